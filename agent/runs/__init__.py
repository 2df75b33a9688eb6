"""Runs: begun, kept, shown to whoever watches, and cancelled."""
