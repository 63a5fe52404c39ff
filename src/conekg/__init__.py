"""conekg answers first-order logical questions over incomplete knowledge graphs."""
