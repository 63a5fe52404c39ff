"""Queries with answers: drawn from a graph, kept on disk, streamed to training."""
