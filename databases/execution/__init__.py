"""How proven statements run: judged, limited, noted, sent to PostgreSQL, and their rows rendered."""
