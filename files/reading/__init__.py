"""What a file holds, guessed and shown: from bytes to tables of text with types."""
