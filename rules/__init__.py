"""Thinking by rules over whatever database is connected, without a model.

The question is covered with marks (`marks`: names and values of the catalogue, intent words, numbers, dates), the marks
are understood as a small query structure (`filters`, `asks`, `planner` → `query`), and the structure is rendered as SQL
(`render`, `frame`, `joins`). Whatever found no place in the structure makes the rules refuse: an answer to another
question is worse than none.

A question of a conversation may change the structure of the one before it, which its turn has kept as JSON
(`conversation`, `query_json`), or say what that one was asked back for (`pending`, `resuming`).

Nothing is imported here: others use the word lists of this package, which must not load the rules as well.
"""
