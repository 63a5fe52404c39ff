"""From a question to ranked, explained answers."""
