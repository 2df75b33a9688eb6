"""Writes a `Query` as SQL."""
