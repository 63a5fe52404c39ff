"""From parameters to ranks, metrics and tables."""
