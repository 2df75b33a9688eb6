"""The semantic file: what an operator says the database means to people.

semantic.schema.json   the format, for editors too
format         tree → what the file says, or problems with their lines
expressions    SQL expressions of metrics and filters: proven to be one expression, columns listed, qualified
near           the nearest real name to a mistaken one
binding        what the file says + catalogue → a catalogue with meanings, and problems
layer          the file of a running service: annotates each catalogue that is read
guesses        what names, comments and values of a catalogue suggest
draft          catalogue → a first file, with comments
__main__       `python -m knowledge.semantic draft` and `check`
"""
