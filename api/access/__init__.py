"""Who may ask: keys, callers, origins and rate limits."""
