"""Tests of `databases`."""
