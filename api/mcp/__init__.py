"""The Model Context Protocol at `POST /mcp`, for assistants and editors that ask for their users.

Two eras of it are spoken: 2026-07-28, in which each request stands alone, and 2025-11-25 with its
predecessors, which begin with a handshake. `messages` reads requests of both; `server` has a table
of methods for each era; `tools`, `resources` and `prompts` are what Citu offers.

Source: https://modelcontextprotocol.io/specification
"""
