"""A sentence, clause by clause, as an intent; what no clause covers is named, never dropped."""
