"""Where tables and columns come from, and what depends on them."""
