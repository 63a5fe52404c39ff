"""Exact answers: a query read as a set of entities."""
