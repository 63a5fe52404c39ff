"""From samples to parameters."""
