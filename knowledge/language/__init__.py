"""How names and questions are written: words, spelling, inflection, and what means the same."""
