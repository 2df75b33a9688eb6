"""Proven statements: judged, limited, noted, sent to PostgreSQL, and their rows rendered."""
