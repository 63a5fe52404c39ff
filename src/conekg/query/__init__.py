"""Queries: the tree, its notations, its rewrites, its shapes and its plans."""
