"""`python -m terminal`: asks a running Citu from a terminal, with progress, tables and charts."""
