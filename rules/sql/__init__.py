"""Renders a query structure as SQL."""
