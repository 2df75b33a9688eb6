"""What runs an embedded PostgreSQL server: its home, its cluster, and the supervisor process that owns it.

Standard library only, and importing no other package of the project: the supervisor is a process of its own that should
start quickly and stay small. Those who want a server use `databases.embedded_server`.
"""
