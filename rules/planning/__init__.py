"""Plans a query from what was read: which table answers, with which measures and dates, and where conditions apply."""
