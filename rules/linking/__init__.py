"""Covers a question with marks: names, values, intent words, numbers and dates."""
