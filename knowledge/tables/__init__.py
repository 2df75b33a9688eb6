"""Find the tables and columns of a question, and show a schema."""
