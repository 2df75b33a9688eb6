"""Tests of `sqltree`."""
