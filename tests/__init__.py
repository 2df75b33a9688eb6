"""Tests: behaviour through the public surface, against real PostgreSQL."""
