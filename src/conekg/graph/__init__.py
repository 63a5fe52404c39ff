"""Knowledge graphs: names, edges, nested splits, and the readers and stores for them."""
