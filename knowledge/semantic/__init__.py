"""Read, check, draft and apply the semantic file: an operator's description of the database.

semantic.schema.json   the format, for editors too
format         tree → entries of the file, or problems with their lines
expressions    SQL expressions of metrics and filters: proven to be one expression, columns listed,
               qualified
closest_name   the nearest real name to a mistaken one
binding        entries + catalogue → a catalogue with meanings, and problems
layer          the file of a running service: annotates each catalogue that is read
guesses        suggestions from names, comments and values of a catalogue
draft          catalogue → a first file, with comments
__main__       `python -m knowledge.semantic draft` and `check`
"""
