"""Composes queries whose answer is rows: which table, which columns."""

from common.meanings import TableKey
from rules.composing.asked import Asked
from rules.query.query import ColumnRef, Dimension, Order, Query
from rules.query.refusals import not_understood, unused_words
from rules.reading.implied import column_dimension
from rules.reading.parts import NO_TABLE
from rules.schema.facts import kind_of
from rules.words import WORDS

_WHICH_ONES = WORDS.chinese.text("questions.which_ones")


def listed_query(asked: Asked, *, compares_groups: bool) -> Query:
    """The query for rows of the asked table; for groups of it, where figures of theirs are compared.

    Raises:
        Refusal: it is not known what is to be listed.
    """
    parts, head = asked.parts, asked.head
    by_owner = _is_by_owner(asked)
    base = head if by_owner else _base(asked)
    if base is None or base == NO_TABLE:
        raise not_understood(asked.question.lexicon)
    if compares_groups:
        named = [one for one in parts.columns if head is None or one.role == "asked"]
        group = column_dimension(asked.question, named[0].link) if len(named) == 1 else Dimension(base)
        return Query(base, dimensions=(group,))
    columns = _columns(asked, base)
    if by_owner:
        owners = [column for one in parts.groups for column in asked.shown_columns(one.dimension)]
        own = asked.names_of(base) if not parts.columns else columns
        order = tuple(Order(column=one, descending=False) for one in owners)
        return Query(base, (*owners, *own), order=(*order, *asked.tie_break(base)))
    if parts.groups and not asked.is_attribute_listing():
        raise unused_words([asked.question.words[one.at].mark.text for one in parts.groups])
    distinct = _is_distinct(asked, base, columns)
    if not distinct and parts.columns + parts.bare and not _is_named(asked, base):
        columns = list(dict.fromkeys([*asked.names_of(base), *columns]))
    order = () if distinct else asked.tie_break(base)
    return Query(base, tuple(columns), order=order, distinct=distinct)


def _is_by_owner(asked: Asked) -> bool:
    """Whether things are listed by what they belong to, which is shown beside them: `每个服务区有哪些店铺`."""
    question, parts, head = asked.question, asked.parts, asked.head
    if head is None or not parts.groups or parts.bare or not question.has("list", "which"):
        return False
    dimensions = [one.dimension for one in parts.groups]
    owned = all(one.table in question.graph.above(head) and one.bucket is None for one in dimensions)
    return owned and bool(question.facts(head).display) and Dimension(head) not in dimensions


def _is_named(asked: Asked, base: TableKey) -> bool:
    """Whether the question names the one row that it asks about."""
    columns = [one.column for one in asked.parts.conditions if one.operator == "="]
    return any(one.table == base and _is_display(asked, one) for one in columns)


def _base(asked: Asked) -> TableKey | None:
    if asked.is_attribute_listing():
        return asked.parts.groups[0].dimension.table
    parts, graph = asked.parts, asked.question.graph
    shown = [one.link.table for one in parts.columns] + [one.link.table for one in parts.bare if one.link]
    candidates = [*([asked.head] if asked.head else []), *shown, *(one.link.table for one in asked.tables)]
    candidates += [one.dimension.table for one in parts.groups if one.dimension.table != NO_TABLE]
    candidates = candidates or [*parts.labels, *_condition_tables(asked)]
    if not candidates:
        return None
    base = candidates[0]
    for key in shown:
        if key not in graph.above(base) and base in graph.above(key):
            base = key
    return base


def _condition_tables(asked: Asked) -> list[TableKey]:
    """The table of a question that names only values: whose kind or state is said, else whose name."""
    parts = asked.parts
    columns = sorted((one.column for one in parts.conditions), key=lambda one: _is_display(asked, one))
    compared = [one.link.table for one in parts.thresholds if one.link is not None]
    dated = [one.link.table for one in parts.spans if one.link is not None]
    return [*(one.table for one in columns), *compared, *dated][:1]


def _columns(asked: Asked, base: TableKey) -> list[ColumnRef]:
    parts, question = asked.parts, asked.question
    shown = [(one.at, one.link) for one in parts.columns]
    shown += [(one.position, one.link) for one in parts.bare if one.link is not None]
    shown.sort(key=lambda item: item[0])
    columns = [column for at, link in shown for column in asked.shown_column(link, question.words[at].mark.text)]
    above = question.graph.above(base)
    others = [one.link.table for one in asked.tables if one.link.table != base and one.link.table in above]
    is_attribute = asked.is_attribute_listing()
    names = asked.names_of(base)
    if is_attribute or (others and not columns):
        columns = [*names, *columns]
    others = [key for key in others if key != asked.head or _is_joined(asked, key) or is_attribute]
    if columns:
        return list(dict.fromkeys([*columns, *(one for key in others for one in asked.names_of(key))]))
    everything = [ColumnRef(base, name) for name in asked.all_columns(base)]
    return names if question.has("which") and names else everything


def _is_joined(asked: Asked, key: TableKey) -> bool:
    """Whether the table is named after "and"."""
    at = next(one.at for one in asked.tables if one.link.table == key)
    before = asked.question.nearest(at - 1, -1, "noise", "of")
    return before is not None and before.mark.means("and")


def _is_distinct(asked: Asked, base: TableKey, columns: list[ColumnRef]) -> bool:
    """Whether each value is listed once: the question says so, or lists categories."""
    question, facts = asked.question, asked.question.facts(base)
    named = [one for one in asked.parts.columns if one.role == "asked"]
    whose = question.has("which") or any(_WHICH_ONES in text for text in question.texts("list"))
    of_kind = whose and named and len(columns) == 1 and not _is_display(asked, columns[0])
    if asked.says("distinct") or of_kind:
        return True
    shown = {column.column for column in columns}
    owned = question.is_chinese and not named and any(one.link.table == base for one in asked.parts.tables)
    names_rows = shown & {*facts.display} or (facts.key and shown >= {*facts.key})
    if asked.tables or names_rows or (facts.display and owned and not _is_named(asked, base)):
        return False  # `店铺的经营类型` are those of each shop
    return all(kind_of(question.schema.column(one.table, one.column)) in ("text", "boolean") for one in columns)


def _is_display(asked: Asked, column: ColumnRef) -> bool:
    facts = asked.question.facts(column.table)
    return column.column in (*facts.display, *facts.key)
