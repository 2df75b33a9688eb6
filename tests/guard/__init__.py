"""Tests of `guard`."""
