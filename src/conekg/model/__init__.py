"""Models: a query read as a region of the embedding space."""
