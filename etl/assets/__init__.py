"""Describes tables: their layer, how they may be joined, which rules their values keep."""
