"""Tests made for a draft, mutants of its models, the ledger of rows."""
