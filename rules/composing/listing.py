"""Composes queries whose answer is rows: of which table, and with which columns."""

from common.meanings import TableKey
from rules.composing.asked import Asked
from rules.query.query import ColumnRef, Dimension, Order, Query
from rules.query.refusals import not_understood, unused_words
from rules.reading.implied import column_dimension
from rules.reading.parts import NO_TABLE
from rules.schema.table_facts import kind_of
from rules.words import WORDS

_WHICH_ONES = WORDS.chinese.text("questions.which_ones")


def listed_query(asked: Asked, *, compares_groups: bool) -> Query:
    """Return the query for rows of the asked table.

    Args:
        compares_groups: figures of groups are compared, so that the groups are listed.

    Raises:
        Refusal: it is not known what is to be listed.
    """
    is_by_owner = _is_by_owner(asked)
    base = asked.head if is_by_owner else _base(asked)
    if base is None or base == NO_TABLE:
        raise not_understood(asked.question.lexicon)
    if compares_groups:
        group = _compared_group(asked, base)
        return Query(base, dimensions=(group,))

    columns = _columns(asked, base)
    if is_by_owner:
        return _listed_by_owner(asked, base, columns)

    _refuse_groups(asked)
    if _is_distinct(asked, base, columns):
        return Query(base, tuple(columns), distinct=True)

    shows_columns = bool(asked.parts.columns or asked.parts.bare)
    if shows_columns and not _is_named(asked, base):
        named = [*asked.names_of(base), *columns]
        columns = list(dict.fromkeys(named))

    return Query(base, tuple(columns), order=asked.tie_break(base))


def _refuse_groups(asked: Asked) -> None:
    """Refuse groups of listed rows, unless they are only the things whose columns are listed."""
    if asked.is_attribute_listing():
        return

    words = [asked.question.words[group.at] for group in asked.parts.groups]
    if words:
        raise unused_words([word.mark.text for word in words])


def _compared_group(asked: Asked, base: TableKey) -> Dimension:
    """Return the groups whose figures are compared: by the only asked column, else the rows."""
    columns = asked.parts.columns
    if asked.head is not None:
        columns = tuple(column for column in columns if column.role == "asked")
    if len(columns) == 1:
        return column_dimension(asked.question, columns[0].link)

    return Dimension(base)


def _listed_by_owner(asked: Asked, base: TableKey, columns: list[ColumnRef]) -> Query:
    """Return the query for things in the order of what they belong to."""
    owners: list[ColumnRef] = []
    for group in asked.parts.groups:
        owners += asked.shown_columns(group.dimension)

    own = columns if asked.parts.columns else asked.names_of(base)
    order = [Order(column=owner, descending=False) for owner in owners]
    return Query(base, (*owners, *own), order=(*order, *asked.tie_break(base)))


def _is_by_owner(asked: Asked) -> bool:
    """Tell whether things are listed by what they belong to: `每个服务区有哪些店铺`.

    That is shown beside them then.
    """
    question = asked.question
    parts = asked.parts
    head = asked.head
    if head is None or not parts.groups or parts.bare or not question.has("list", "which"):
        return False

    owners = question.graph.above(head)
    for group in parts.groups:
        dimension = group.dimension
        if dimension == Dimension(head) or dimension.bucket is not None:
            return False
        if dimension.table not in owners:
            return False

    return bool(question.facts(head).display)


def _is_named(asked: Asked, base: TableKey) -> bool:
    """Tell whether the question names the one row that it asks about."""
    for condition in asked.parts.conditions:
        is_of_base = condition.column.table == base and condition.operator == "="
        if is_of_base and _is_display(asked, condition.column):
            return True

    return False


def _base(asked: Asked) -> TableKey | None:
    """Return the table whose rows are listed."""
    parts = asked.parts
    graph = asked.question.graph
    if asked.is_attribute_listing():
        return parts.groups[0].dimension.table

    shown = [*parts.column_tables, *parts.bare_tables]
    base = next(iter(_base_candidates(asked, shown)), None)
    for key in shown:
        is_below = base is not None and base in graph.above(key)
        if base is not None and is_below and key not in graph.above(base):
            base = key

    return base


def _base_candidates(asked: Asked, shown: list[TableKey]) -> list[TableKey]:
    """Return the tables that a listing may be of, the likeliest first."""
    found = [asked.head] if asked.head is not None else []
    found += shown
    found += asked.table_keys
    for group in asked.parts.groups:
        if group.dimension.table != NO_TABLE:
            found.append(group.dimension.table)

    return found or [*asked.parts.labels, *_condition_tables(asked)]


def _condition_tables(asked: Asked) -> list[TableKey]:
    """Return the table of a question that names only values.

    A value that is somebody's kind or state says more of the table than a name does.
    """
    parts = asked.parts
    columns = [condition.column for condition in parts.conditions]
    columns.sort(key=lambda one: _is_display(asked, one))
    found = [column.table for column in columns]
    found += parts.threshold_tables
    found += [span.link.table for span in parts.spans if span.link is not None]
    return found[:1]


def _columns(asked: Asked, base: TableKey) -> list[ColumnRef]:
    """Return the columns that a listing shows."""
    is_attribute = asked.is_attribute_listing()
    columns = _named_columns(asked)
    names = asked.names_of(base)
    others = _tables_above(asked, base)
    shows_others_alone = bool(others) and not columns
    if is_attribute or shows_others_alone:
        columns = [*names, *columns]
    if not columns:
        asks_which = asked.question.has("which")
        if names and asks_which:
            return names

        return asked.useful_columns(base)

    for key in others:
        is_context = key == asked.head and not _is_joined(asked, key)
        if is_attribute or not is_context:
            columns += asked.names_of(key)

    return list(dict.fromkeys(columns))


def _named_columns(asked: Asked) -> list[ColumnRef]:
    """Return the columns that the question names, in its order."""
    shown = [(column.at, column.link) for column in asked.parts.columns]
    shown += [(one.position, one.link) for one in asked.parts.bare if one.link is not None]
    shown.sort(key=lambda item: item[0])
    found: list[ColumnRef] = []
    for at, link in shown:
        found += asked.shown_column(link, asked.question.words[at].mark.text)

    return found


def _tables_above(asked: Asked, base: TableKey) -> list[TableKey]:
    """Return the named tables to which rows of `base` belong."""
    above = asked.question.graph.above(base).keys() - {base}
    return [key for key in asked.table_keys if key in above]


def _is_joined(asked: Asked, key: TableKey) -> bool:
    """Tell whether the table is named after "and"."""
    at = next(table.at for table in asked.tables if table.link.table == key)
    before = asked.question.nearest(at - 1, -1, "noise", "of")
    return before is not None and before.mark.means("and")


def _is_distinct(asked: Asked, base: TableKey, columns: list[ColumnRef]) -> bool:
    """Tell whether each value is listed once: the question says so, or lists categories."""
    if asked.says("distinct") or _asks_for_category(asked, columns):
        return True
    if asked.tables or _identify_rows(asked, base, columns):
        return False
    if _is_of_each(asked, base):
        # `店铺的经营类型` are those of each shop
        return False

    schema = asked.question.schema
    kinds = {kind_of(schema.column(column.table, column.column)) for column in columns}
    return kinds <= {"text", "boolean"}


def _asks_for_category(asked: Asked, columns: list[ColumnRef]) -> bool:
    """Tell whether "which" asks for the values of one column that is no name: "which colours"."""
    if len(columns) != 1 or not _asks_for_columns(asked):
        return False

    question = asked.question
    listing = " ".join(question.texts("list"))
    asks_which = question.has("which") or _WHICH_ONES in listing
    return asks_which and not _is_display(asked, columns[0])


def _asks_for_columns(asked: Asked) -> bool:
    return any(column.role == "asked" for column in asked.parts.columns)


def _is_of_each(asked: Asked, base: TableKey) -> bool:
    """Tell whether a column is asked for beside its table, in Chinese, of each of its rows."""
    question = asked.question
    if not question.is_chinese or _asks_for_columns(asked):
        return False

    is_owned = any(table.link.table == base for table in asked.parts.tables)
    has_names = bool(question.facts(base).display)
    return is_owned and has_names and not _is_named(asked, base)


def _identify_rows(asked: Asked, base: TableKey, columns: list[ColumnRef]) -> bool:
    """Tell whether a name or the whole key of the rows is among the columns."""
    facts = asked.question.facts(base)
    shown = {column.column for column in columns}
    if not shown.isdisjoint(facts.display):
        return True

    return bool(facts.key) and shown.issuperset(facts.key)


def _is_display(asked: Asked, column: ColumnRef) -> bool:
    """Tell whether a column is a name or a key of its table's rows."""
    facts = asked.question.facts(column.table)
    return column.column in (*facts.display, *facts.key)
