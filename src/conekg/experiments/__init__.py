"""Every table and claim of the paper as a command."""
