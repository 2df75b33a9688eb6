"""Thinking with a model: writes the prompts and reads the replies."""
