"""Connections to PostgreSQL, for the databases that are asked and for the store."""
