"""Describe the columns of a result, and write its values for a reader."""
