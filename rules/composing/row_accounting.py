"""Refuses statements whose conditions hold for other rows than those that the question means."""

from rules.composing.asked import Asked
from rules.query.query import ColumnRef, Query, references
from rules.query.refusals import unused_words
from rules.reading.words import Word
from rules.schema.table_facts import Edge
from rules.words import WORDS

_NEVER = frozenset(WORDS.both("questions.never"))
_FINAL = frozenset(WORDS.both("questions.final"))
_EXCLUDING = ("!=", "not in")
_WHOLE_NAME = 0.9  # quality
_COMPARING = ("cmp", "range", "not")


def refuse_other_rows(asked: Asked, query: Query) -> None:
    """Refuse a query of which a condition holds for none, or for other rows than are meant.

    Raises:
        Refusal: names the words.
    """
    _refuse_what_is_absent(asked, query)
    _refuse_rows_for_totals(asked, query)
    _refuse_states_as_history(asked, query)
    _refuse_things_as_values(asked, query)


def _refuse_what_is_absent(asked: Asked, query: Query) -> None:
    """Refuse to show rows that must be absent: `没有捐过文物的捐赠人` are no relics without one."""
    absent = set()
    for condition in query.conditions:
        if condition.operator == "null" and condition.column.table == query.base:
            absent.add(condition.column.column)

    shown = {(one.table, one.via) for one in references((query.columns, query.dimensions))}
    for edge in asked.question.facts(query.base).edges:
        (column, *_) = edge.columns
        is_shown = (edge.parent, column) in shown
        if (edge.parent, None) in shown and edge.parent != query.base:
            is_shown = is_shown or _is_only_way(asked, edge)
        if is_shown and column in absent:
            raise unused_words(asked.question.texts("not", "null") or ["?"])


def _is_only_way(asked: Asked, edge: Edge) -> bool:
    """Tell whether this reference is the only one to its parent."""
    edges = asked.question.facts(edge.child).edges
    return [one.parent for one in edges].count(edge.parent) == 1


def _refuse_rows_for_totals(asked: Asked, query: Query) -> None:
    """Refuse a figure of single rows for that of a thing: "projects whose costs exceed the budget".

    The costs of a project are those of all its rows together.
    """
    below = asked.question.graph.below(query.base).keys() - {query.base}
    for condition in query.conditions:
        first, *others = condition.columns
        tables = {one.table for one in others}
        is_of_row_below = first.table in below
        if is_of_row_below and tables and tables != {first.table}:
            raise unused_words(asked.question.texts(*_COMPARING) or ["?"])


def _refuse_states_as_history(asked: Asked, query: Query) -> None:
    """Refuse "never exhibited" for what is in any other state now: a state tells no history.

    What was cancelled stays so.
    """
    excluded = set()
    for condition in query.conditions:
        if condition.operator in _EXCLUDING:
            excluded.add(condition.column)

    for word in asked.question.words:
        value = word.link_as("val")
        if value is None or ColumnRef(value.table, str(value.column)) not in excluded:
            continue

        before = _never_before(asked, word)
        if before is not None and word.text not in _FINAL:
            raise unused_words([before.mark.text, word.mark.text])


def _refuse_things_as_values(asked: Asked, query: Query) -> None:
    """Refuse to take the only name of the rows for a value of theirs: `没有职称的编辑`."""
    said = [at for at, link in asked.parts.said if link.table == query.base]
    if asked.tables or query.measures:
        return

    for at in said:
        table = asked.question.words[at].link_as("tab")
        if table is not None and table.table == query.base and table.quality >= _WHOLE_NAME:
            raise unused_words([asked.question.words[at].mark.text])


def _never_before(asked: Asked, word: Word) -> Word | None:
    """Return a word such as "never" before a state."""
    before = asked.question.nearest(word.at - 1, -1, "noise")
    return before if before is not None and before.text in _NEVER else None
