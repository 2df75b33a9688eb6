"""The asked database: guard, connection, catalogue, and the embedded server with its demo data."""
