"""Facts: names, edges, and the nested graphs made of them."""
