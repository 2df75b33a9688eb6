"""Classify questions, summarize results, offer further questions and make conversation."""
