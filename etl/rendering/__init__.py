"""A draft as files: a dbt project, the same as plain SQL, and what is known about both."""
