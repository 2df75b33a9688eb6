"""Engines that speak PostgreSQL's protocol: what each is called, and what it can do."""
