"""Tests of `etl`."""
