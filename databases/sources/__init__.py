"""Sources attached to a hub: a PostgreSQL database whose tables lie in other databases."""
