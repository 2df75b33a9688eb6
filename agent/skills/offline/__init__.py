"""Thinking by rules over whatever database is connected, without a model."""
