"""Completes what was read: tables, measures, dates and where conditions apply."""
