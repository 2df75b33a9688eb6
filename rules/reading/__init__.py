"""Reads conditions, figures, groups and orders out of marks."""
