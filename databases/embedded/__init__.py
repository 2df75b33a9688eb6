"""Runs an embedded PostgreSQL server: its home, its cluster, and the supervisor process that owns
it.

These modules import only each other and the standard library, because the supervisor is a process
of its own, which should start quickly and stay small. Code that needs a server calls
`databases.embedded.embedded_server`.
"""
