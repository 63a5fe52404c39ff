"""The experiments of the paper, one file per table or figure, beside its published numbers."""
