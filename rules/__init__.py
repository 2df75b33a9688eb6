"""Thinking by rules over whatever database is connected, without a model.

A question passes through the packages of this one in this order. `words` says what words ask for,
`schema` what the database is about, `linking` covers the question with marks: names and values of
the database, words, numbers, dates.

>>> text = "total amount of shipped orders by city"
>>> marks = marks_of(text, lexicon_of(catalog))
>>> [mark.text for mark in marks]
['total amount', 'of', 'shipped', 'orders', 'by', 'city']
>>> [mark.intent.kind if mark.intent else mark.links[0].kind for mark in marks]
['column', 'of', 'value', 'table', 'by', 'column']

Given the other marks, each names one thing or nothing.

>>> nouns = nouns_of(marks, lexicon_of(catalog))
>>> [noun.table.table[1] for noun in nouns if noun and noun.is_table]
['orders']

`reading` covers them with patterns, each of which gives a part of the question in the terms of
`query`.

>>> question = QuestionWords(marks, nouns, lexicon_of(catalog), is_chinese=False)
>>> [best, *others] = readings(question, BY_SYMBOL)
>>> [(one.column.column, one.operator, one.operands) for one in best.parts.conditions]
[('status', '=', ('shipped',))]
>>> [(one.dimension.table[1], one.dimension.column) for one in best.parts.groups]
[('customers', 'city')]

`composing` decides which table answers and gives everything its place in one `Query`. What found no
place makes the rules refuse: an answer to another question is worse than none.

>>> understood = understand(Inquiry(text, "en", catalog))
>>> [(one.function, one.table[1], one.column) for one in understood.query.measures]
[('sum', 'orders', 'total_amount')]

`sql` writes the statement.

>>> print(understood.sql)
SELECT c.city, sum(o.total_amount) AS total_total_amount
FROM orders AS o
JOIN customers AS c ON c.customer_id = o.customer_id
WHERE o.status = 'shipped'
  AND NOT c.is_deleted
GROUP BY c.city
ORDER BY total_total_amount DESC NULLS LAST, c.city

`conversation` puts a follow-up, or the answer to a clarifying question, into the structure of the
question before it, which its turn has kept as JSON. `answering` puts the result into words, and
answers talk.

Nothing is imported here: others use the words of this package, which must not load the rules as
well.
"""
