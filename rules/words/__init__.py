"""Words of the two languages, as data."""
