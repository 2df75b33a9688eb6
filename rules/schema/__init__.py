"""The catalogue as the rules see it: tables, joins, and the phrases that name things."""
