"""What can be read of a database, and what the guard must know of its server."""
