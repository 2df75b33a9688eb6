"""Covers the marks of a question with patterns, each of which gives a part of the query."""
