"""Tests of `knowledge`."""
