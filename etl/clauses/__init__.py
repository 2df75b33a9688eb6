"""Reads a sentence as an intent, clause by clause; words that no clause covers are refused."""
