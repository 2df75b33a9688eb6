"""Reads what the marks of a question ask for: conditions, figures, groups and orders."""
