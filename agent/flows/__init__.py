"""Flows: each is a compiled graph that answers questions in its own way. None imports another."""
