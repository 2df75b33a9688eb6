"""Composes queries whose answer is rows: which table, which columns."""

from common.meanings import TableKey
from rules.composing.asked import Asked
from rules.query.query import ColumnRef, Dimension, Order, Query, ref
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
        if len(named) == 1:
            return Query(base, dimensions=(column_dimension(asked.question, named[0].link),))
        return Query(base, dimensions=(Dimension(base),))
    columns = _columns(asked, base)
    limit = parts.limits[0] if parts.limits else None
    if by_owner:
        owners = [
            ColumnRef(one.dimension.table, name, one.dimension.via)
            for one in parts.groups
            for name in asked.shown_names(one.dimension)
        ]
        own = asked.names_of(base) if not parts.columns else columns
        order = tuple(Order(column=one, descending=False) for one in owners)
        return Query(base, (*owners, *own), order=(*order, *asked.tie_break(base)), limit=limit)
    if parts.groups and not asked.is_attribute_listing():
        raise unused_words([asked.question.words[one.at].mark.text for one in parts.groups])
    distinct = _is_distinct(asked, base, columns)
    if not distinct and parts.columns + parts.bare and not _is_named(asked, base):
        columns = list(dict.fromkeys([*asked.names_of(base), *columns]))
    order = () if distinct else asked.tie_break(base)
    return Query(base, tuple(columns), order=order, limit=limit, distinct=distinct)


def _is_by_owner(asked: Asked) -> bool:
    """Whether things are listed by what they belong to, which is shown beside them: `每个服务区有哪些店铺`."""
    question, groups, head = asked.question, asked.parts.groups, asked.head
    if head is None or not groups or asked.parts.bare or not question.facts(head).display:
        return False
    if not question.has("list", "which"):
        return False
    above = question.graph.above(head)
    dimensions = [one.dimension for one in groups]
    return all(
        one.bucket is None and one.table in above and (one.column is not None or one.table != head)
        for one in dimensions
    )


def _is_named(asked: Asked, base: TableKey) -> bool:
    """Whether the question names the one row that it asks about."""
    facts = asked.question.facts(base)
    return any(
        one.operator == "=" and one.column.table == base and one.column.column in (*facts.display, *facts.key)
        for one in asked.parts.conditions
    )


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
    columns = [one.column for one in parts.conditions]
    kinds = [one.table for one in columns if not _is_display(asked, one)]
    compared = [one.link.table for one in parts.thresholds if one.link is not None]
    dated = [one.link.table for one in parts.spans if one.link is not None]
    return [*kinds, *(one.table for one in columns), *compared, *dated][:1]


def _columns(asked: Asked, base: TableKey) -> list[ColumnRef]:
    parts, question = asked.parts, asked.question
    shown = sorted(
        [(one.at, one.link) for one in parts.columns]
        + [(one.position, one.link) for one in parts.bare if one.link is not None],
        key=lambda item: item[0],
    )
    columns = [column for at, link in shown for column in asked.shown_column(link, question.words[at].mark.text)]
    above = question.graph.above(base)
    others = [one.link.table for one in asked.tables if one.link.table != base and one.link.table in above]
    is_attribute = asked.is_attribute_listing()
    names = asked.names_of(base)
    if is_attribute or (others and not columns) or _tells_apart(asked, base) or _leads_columns(asked, base):
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


def _tells_apart(asked: Asked, base: TableKey) -> bool:
    """Whether names are shown beside columns of many things, to tell them apart: `服务区的开业时间`."""
    owned = base in {one.link.table for one in (*asked.tables, *asked.owners)}
    facts = asked.question.facts(base)
    named = {one.column.column for one in asked.parts.conditions}
    if named & {*facts.display, *facts.key} or any(one.role == "asked" for one in asked.parts.columns):
        return False
    keyed = any(_is_display(asked, ref(one.link)) for one in asked.parts.columns)
    return asked.question.is_chinese and owned and not keyed and bool(asked.parts.columns or asked.parts.bare)


def _leads_columns(asked: Asked, base: TableKey) -> bool:
    """Whether columns follow the table, so that its names come first: `departments and their managers`."""
    words = asked.question.words
    shown = [*(one.at for one in asked.parts.columns), *(one.position for one in asked.parts.bare)]
    for one in asked.tables:
        between = words[one.at + 1 : min((at for at in shown if at > one.at), default=0)]
        if one.link.table == base and any(word.mark.means("and", "with") for word in between):
            return True
    return False


def _is_distinct(asked: Asked, base: TableKey, columns: list[ColumnRef]) -> bool:
    """Whether each value is listed once: the question says so, or lists categories."""
    question = asked.question
    if asked.says("distinct"):
        return True
    named = [one for one in asked.parts.columns if one.role == "asked"]
    whose = question.has("which") or any(_WHICH_ONES in text for text in question.texts("list"))
    if whose and named and len(columns) == 1 and not _is_display(asked, columns[0]):
        return True
    facts = question.facts(base)
    shown = {column.column for column in columns}
    if asked.tables or shown & {*facts.display} or (facts.key and shown >= {*facts.key}):
        return False
    return all(kind_of(question.schema.column(one.table, one.column)) in ("text", "boolean") for one in columns)


def _is_display(asked: Asked, column: ColumnRef) -> bool:
    facts = asked.question.facts(column.table)
    return column.column in (*facts.display, *facts.key)
