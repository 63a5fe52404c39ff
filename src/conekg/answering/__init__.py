"""From a graph to a trained run, and from a question to ranked, explained answers."""
