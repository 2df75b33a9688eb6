"""Reads SQL as PostgreSQL's own parse tree: what a statement refers to, compares and returns.

`parsing` makes the tree; the other modules answer one question each about it. Nothing here decides
whether a statement may run: that is `guard`.
"""
