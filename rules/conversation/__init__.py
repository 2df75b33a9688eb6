"""Understand a question, or a follow-up together with the questions before it, as a `Query`."""
