"""Thinking with a model: prompts, and what its replies mean."""
