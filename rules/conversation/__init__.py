"""From a question, or a follow-up and the questions before it, to a query structure."""
