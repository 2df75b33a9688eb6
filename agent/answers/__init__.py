"""Checks what an answer says about its rows."""
