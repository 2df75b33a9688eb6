"""Tests of the room `etl`."""
