"""What is raised where a caller can't be told at once: a server must not wait between requests."""


class WaitNeeded(Exception):
    """Who the caller is takes a while to find out, and nobody may wait for it here."""
