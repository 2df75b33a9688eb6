"""The structure that a question is understood as."""
