"""What an answer says of its rows."""
