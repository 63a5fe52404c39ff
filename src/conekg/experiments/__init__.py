"""One file per table or figure of the paper, and its published numbers."""
