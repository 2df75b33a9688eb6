"""Tests of `agent`."""
