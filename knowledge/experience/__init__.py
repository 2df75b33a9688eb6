"""Use what was learnt: find examples, lessons and documents for a question, and reuse SQL.

experience_service  finds them for a question, in bounded time, as its actor may see them
entry_indexes       the entries of everybody and of each user, ready to be looked up
ranking             the entries that have to do with a question, by their words
phrasing            a question as words, numbers, periods and quotations
dates               the dates that stand for a period which a question names
shapes              the literals of an example's question and SQL that may differ, and go together
reuse               an example's SQL with the literals of another question
proving             examples whose tables have changed, proven again in the background
actor_access        the tables and columns that an actor may be told of
hidden_rows         the rows that an actor may not be told of
"""
