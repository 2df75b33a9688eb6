"""Tests of `llm`."""
