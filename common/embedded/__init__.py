"""What runs an embedded PostgreSQL server: its home, its cluster, and the supervisor process that owns it.

These modules import the standard library and nothing else of the project: the supervisor is a process of its own, which
should start quickly and stay small. Whoever wants a server calls `databases.embedded_server`.
"""
