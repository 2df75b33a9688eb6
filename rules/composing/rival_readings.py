"""Asks back where a word means two things nearly equally well, and the statement would differ.

The user chooses a column, and the question is read once more with it.
"""

from collections.abc import Iterator, Sequence

from rules.composing.asked import Asked
from rules.query.pending import Choice
from rules.query.query import Query, measured_table, references
from rules.query.refusals import ambiguous_column, several_things
from rules.reading import costs
from rules.reading.parts import Reading
from rules.reading.words import ColumnIdentity, QuestionWords, Word
from rules.schema.links import Link

_SAME_VALUE = 0.02  # by which the qualities of two stored values of a word may differ


def refuse_doubtful(asked: Asked, query: Query) -> None:
    """Ask which column is meant by a group or value that the measured rows have nearer by.

    Raises:
        Refusal: with the columns as choices.
    """
    for word, chosen, rivals in (*_groups(asked, query), *_values(asked, query)):
        nearer = [rival for rival in rivals if _is_as_near(asked, query, rival, chosen)]
        if nearer:
            choices = [(one.table, str(one.column)) for one in (chosen, *nearer)]
            raise ambiguous_column(word.mark.text, choices, asked.question.lexicon)

    _ask_whose_value(asked, query)


def _ask_whose_value(asked: Asked, query: Query) -> None:
    """Ask whose value is meant where nothing else tells the table: "managers in London"."""
    parts = asked.parts
    figures = [one for one in asked.figures if one.link is not None]
    named = (*parts.tables, *parts.columns, *parts.groups, *parts.labels, *figures)
    if named or query.base in asked.question.named_tables():
        return

    found = []
    for place, chosen in parts.said:
        if chosen.table != query.base:
            continue

        links = asked.question.words[place].mark.links
        others = [one for one in links if one.table != chosen.table and _is_same_value(one, chosen)]
        if not others:
            return

        choices = [(one.table, str(one.column)) for one in (chosen, *others)]
        if asked.question.settled.among(choices) is not None:
            return

        found.append(ambiguous_column(_text_at(asked, place), choices, asked.question.lexicon))

    if found:
        raise found[0]


def _text_at(asked: Asked, place: int) -> str:
    return asked.question.words[place].mark.text


def _groups(asked: Asked, query: Query) -> Iterator[tuple[Word, Link, list[Link]]]:
    """Yield the words of groups that are but a part of their column's name, with other columns."""
    grouped = {(dimension.table, dimension.column) for dimension in query.dimensions}
    for word in asked.question.words:
        chosen = word.noun.column if word.noun is not None else None
        if word.noun is None or chosen is None or chosen.quality >= costs.WHOLE_NAME:
            continue
        if (chosen.table, chosen.column) in grouped:
            # the measured rows may name theirs in more words: `item_type` of booking items
            own = measured_table(query)
            others = []
            for _, link in word.noun.columns:
                if link.quality >= costs.CLEAR or link.table == own:
                    others.append(link)

            yield word, chosen, others


def _values(asked: Asked, query: Query) -> Iterator[tuple[Word, Link, list[Link]]]:
    """Yield the words of stored values by which rows are restricted, with other columns of them."""
    restricted = {
        (condition.column.table, condition.column.column) for condition in query.conditions
    }
    for place, chosen in asked.parts.said:
        if (chosen.table, chosen.column) not in restricted:
            continue

        word = asked.question.words[place]
        others = word.noun.values if word.noun is not None else ()
        yield word, chosen, [one for _, one in others if _is_same_value(one, chosen)]


def _is_same_value(link: Link, chosen: Link) -> bool:
    is_value = link.kind == "value" and link.value == chosen.value
    return is_value and link.quality >= chosen.quality - _SAME_VALUE


def _is_as_near(asked: Asked, query: Query, rival: Link, chosen: Link) -> bool:
    """Tell whether the rival's rows are as near to the measured ones as those of the chosen."""
    if (rival.table, rival.column) == (chosen.table, chosen.column):
        return False
    if _is_said(asked, chosen, rival):
        return False

    steps = asked.question.graph.above(measured_table(query))
    if chosen.table not in steps or rival.table not in steps:
        return False

    return 0 < steps[chosen.table] >= steps[rival.table]


def _is_said(asked: Asked, chosen: Link, rival: Link) -> bool:
    """Tell whether the question names the chosen table or column, or the user has chosen."""
    question = asked.question
    pair = [(one.table, one.column) for one in (chosen, rival)]
    if question.settled.among(pair) is not None:
        return True
    if chosen.table in question.named_tables():
        return True

    return any(_names_column(word, chosen) for word in question.words)


def _names_column(word: Word, link: Link) -> bool:
    if link.kind != "value" or word.noun is None or word.noun.column is None:
        return False

    named = word.noun.column
    return (named.table, named.column) == (link.table, link.column)


def is_rival(first: Reading, other: Reading) -> bool:
    """Tell whether two readings take the same words in the same way, at nearly the same cost."""
    if other.cost > first.cost + costs.DOUBT:
        return False

    return _shape(first) == _shape(other)


def _shape(reading: Reading) -> Sequence[tuple[int, int, str]]:
    return [(fragment.start, fragment.end, fragment.pattern) for fragment in reading.fragments]


def refuse_rivals(question: QuestionWords, first: Query, other: Query) -> None:
    """Ask which of two columns a word means, if the queries differ in these alone.

    Raises:
        Refusal: with both columns as choices.
    """
    columns = _columns(first), _columns(other)
    own_columns = columns[0] - columns[1], columns[1] - columns[0]
    if len(own_columns[0]) != 1 or len(own_columns[1]) != 1:
        return

    choices = [(table, str(column)) for table, column in (*own_columns[0], *own_columns[1])]
    for word in question.words:
        if word.noun is None:
            continue

        named = {(link.table, str(link.column)) for _, link in word.noun.columns}
        if named.issuperset(choices):
            raise ambiguous_column(word.mark.text, choices, question.lexicon)


def _columns(query: Query) -> set[ColumnIdentity]:
    found: set[ColumnIdentity] = set()
    for reference in references((query.conditions, query.dimensions, query.related, query.either)):
        found.add((reference.table, reference.column))

    found |= {(measure.table, measure.column) for measure in query.measures}
    return found


def means_rival(question: QuestionWords, first: Query, other: Query) -> bool:
    """Tell whether the user has chosen the things that the other query is about.

    "books by German authors" are books, or numbers of books of each author.

    Raises:
        Refusal: the queries are about other things, and the user has not chosen yet.
    """
    if _says_less(other, first):
        return False

    of_first, of_other = _things(first), _things(other)
    if not of_first or not of_other:
        return False

    only_first = [one for one in of_first if one not in of_other]
    only_other = [one for one in of_other if one not in of_first]
    if not only_first or not only_other:
        return False

    choices = [only_first[0], only_other[0]]
    named = question.named_tables()
    if any(column is None and table not in named for table, column in choices):
        return False

    chosen = question.settled.among(choices)
    if chosen is None:
        raise several_things(choices, question.lexicon)

    return chosen == only_other[0]


def _says_less(query: Query, than: Query) -> bool:
    """Tell whether a query lacks comparisons of the other, or averages over single rows."""
    if than.having and not query.having:
        return True

    rows = {
        dimension.table
        for dimension in query.dimensions
        if dimension.column is None and not dimension.is_of_time
    }
    return any(measure.function == "avg" and measure.table in rows for measure in query.measures)


def _things(query: Query) -> list[Choice]:
    """Return what each row of the answer is: a thing, or a group; none where it is one figure."""
    if not query.measures:
        return [(query.base, None)]

    return [
        (dimension.table, dimension.column)
        for dimension in query.dimensions
        if not dimension.is_of_time
    ]
