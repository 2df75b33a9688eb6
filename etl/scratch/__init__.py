"""Where drafts are built: the database, samples of the sources, builds, dbt."""
