"""Tests of `serving`."""
