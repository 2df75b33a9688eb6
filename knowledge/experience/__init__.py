"""What was learnt, put to use: examples, lessons and documents for a question, and an example's SQL used again.

definitions   what a query's tables look like, as a hash
phrasing      a question as words, numbers, periods and quotations
dates         which dates stand for a period that a question names
shapes        what in an example's question and SQL may differ, and goes together
reuse         an example's SQL with the literals of another question
ranking       which entries have to do with a question
library       what a worker knows of all that, and who sees what
"""
