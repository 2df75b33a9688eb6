"""Language models behind the openai client."""
