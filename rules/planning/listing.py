"""Plans queries whose answer is rows: which table, which columns."""

from rules.planning.heads import is_attribute_listing
from rules.planning.plan import Plan, all_columns, is_asked, shown_names, tie_break
from rules.planning.restricting import is_aggregate
from rules.query.conditions import ref
from rules.query.query import ColumnRef, Dimension, Order, Query
from rules.query.refusals import not_understood, unused_words
from rules.readers.groups import column_dimension
from rules.schema.joins import is_default
from rules.schema.links import Link
from rules.schema.schema import TableKey, kind_of
from rules.words import WORDS

_KEY_WORDS, _WHICH_ONES = WORDS.found("columns.said.keys"), WORDS.chinese.text("questions.which_ones")


def listed_query(plan: Plan) -> Query:
    """The query for rows of the asked table; for groups of it, where figures of theirs are compared."""
    thresholds = [threshold for threshold in plan.filters.thresholds if is_aggregate(plan, threshold)]
    by_owner = _is_told_apart_by_owners(plan)
    base = plan.head if by_owner else _listed_base(plan)
    if base is None:
        raise not_understood(plan.reading.lexicon)
    if thresholds:
        asked = [link for index, link in plan.named_at.items() if plan.head is None or is_asked(plan, index)]
        if len(asked) == 1:
            plan.projection.remove(asked[0])
            return Query(base, dimensions=(column_dimension(plan.reading, asked[0]),))
        return Query(base, dimensions=(Dimension(base),))
    columns = _listed_columns(plan, base)
    limit, plan.asks.limit = plan.asks.limit, None
    if by_owner:
        groups = plan.asks.dimensions
        owners = [ColumnRef(one.table, name, one.via) for one in groups for name in shown_names(plan, one)]
        own = _names_of(plan, base) if columns == _all_of(plan, base) else columns
        order = tuple(Order(column=one, descending=False) for one in owners)
        return Query(base, (*owners, *own), order=(*order, *tie_break(plan, base)), limit=limit)
    if plan.asks.dimensions and not is_attribute_listing(plan):
        marks = plan.reading.marks
        raise unused_words([mark.text for mark in marks if mark.means("each", "by", "bucket") or mark.arg == "kind"])
    distinct = _is_distinct(plan, base, columns)
    order = () if distinct else tie_break(plan, base)
    return Query(base, tuple(columns), order=order, limit=limit, distinct=distinct)


def _is_told_apart_by_owners(plan: Plan) -> bool:
    """Whether things are listed by what they belong to, which is shown beside their names: `每个服务区有哪些店铺`."""
    reading, dimensions, head = plan.reading, plan.asks.dimensions, plan.head
    asked = plan.asks.lists or plan.asks.which
    if head is None or not asked or not dimensions or not reading.facts(head).display or plan.bare:
        return False
    above = reading.graph.above(head)
    return all(
        one.bucket is None and one.table in above and (one.column is not None or one.table != head)
        for one in dimensions
    )


def _names_of(plan: Plan, table: TableKey) -> list[ColumnRef]:
    return [ColumnRef(table, name) for name in plan.reading.facts(table).display]


def _all_of(plan: Plan, table: TableKey) -> list[ColumnRef]:
    return [ColumnRef(table, name) for name in all_columns(plan, table)]


def _listed_base(plan: Plan) -> TableKey | None:
    if is_attribute_listing(plan):
        return plan.asks.dimensions[0].table
    shown = [link.table for link in plan.projection] + [figure.link.table for figure in plan.bare if figure.link]
    candidates = [*([plan.head] if plan.head else []), *shown]
    candidates += [key for _, key in plan.tables]
    candidates += [dimension.table for dimension in plan.asks.dimensions if dimension.table != ("", "")]
    candidates = candidates or _condition_tables(plan)
    if not candidates:
        return None
    base, graph = candidates[0], plan.reading.graph
    for key in shown:
        if key not in graph.above(base) and base in graph.above(key):
            base = key
    return base


def _condition_tables(plan: Plan) -> list[TableKey]:
    """The table of a question that names only values: whose kind or state is said, else whose name."""
    conditions = [condition.column for condition in plan.filters.conditions]
    kinds = [column.table for column in conditions if not _is_display(plan, column)]
    compared = [threshold.link.table for threshold in plan.filters.thresholds if threshold.link is not None]
    dated = [span.link.table for span in plan.filters.spans if span.link is not None]
    return [*kinds, *(column.table for column in conditions), *compared, *dated][:1]


def _listed_columns(plan: Plan, base: TableKey) -> list[ColumnRef]:
    shown = sorted(
        [(index, link) for index, link in plan.named_at.items()]
        + [(figure.position, figure.link) for figure in plan.bare if figure.link is not None],
        key=lambda item: item[0],
    )
    columns = [column for index, link in shown for column in shown_column(plan, index, link)]
    is_attribute, leads_columns = is_attribute_listing(plan), _leads_columns(plan, base)
    others = [
        key
        for index, key in plan.tables
        if key != base
        and key in plan.reading.graph.above(base)
        and (key != plan.head or _is_joined(plan, index) or is_attribute)
    ]
    names = _names_of(plan, base)
    if is_attribute or (others and not columns) or leads_columns or _tells_apart(plan, base):
        columns = [*(names or (_all_of(plan, base) if leads_columns else ())), *columns]
    if columns:
        return list(dict.fromkeys([*columns, *(one for key in others for one in _names_of(plan, key))]))
    return names if plan.asks.which and names else _all_of(plan, base)


def _tells_apart(plan: Plan, base: TableKey) -> bool:
    """Whether names are shown beside columns of many things, to tell them apart: `服务区的开业时间`."""
    owned = base in {key for _, key in (*plan.tables, *plan.asks.qualifiers)}
    named = {condition.column.column for condition in plan.filters.conditions}
    known = bool(named & {*plan.reading.facts(base).display, *plan.reading.facts(base).key})
    if any(is_asked(plan, index) for index in plan.named_at):
        return False
    keyed = any(_is_display(plan, ref(link)) for link in plan.named_at.values())
    return plan.reading.is_chinese and owned and not known and not keyed and bool(plan.named_at or plan.bare)


def _leads_columns(plan: Plan, base: TableKey) -> bool:
    """Whether columns follow the table, so that its names come first: `departments and their managers`."""
    for index, key in plan.tables:
        joint = plan.reading.beside(index, 1, ("noise",))
        if key == base and joint is not None and plan.reading.marks[joint].means("and", "with"):
            told = {*plan.named_at, *(figure.position for figure in plan.bare)}
            return any(place in told for place in range(joint + 1, joint + 5))
    return False


def _is_joined(plan: Plan, index: int) -> bool:
    """Whether the noun stands after "and"."""
    before = plan.reading.beside(index, -1, ("noise", "of"))
    return before is not None and plan.reading.marks[before].means("and")


def shown_column(plan: Plan, index: int, link: Link) -> list[ColumnRef]:
    """The columns that show a column; a reference is shown by names, unless its number is asked for."""
    facts = plan.reading.facts(link.table)
    if link.column in facts.display and plan.reading.named_thing(index) == link.table:
        return [ColumnRef(link.table, name) for name in facts.display]
    says_key = _KEY_WORDS.search(plan.reading.marks[index].text)
    for edge in facts.edges:
        display = plan.reading.facts(edge.parent).display
        if edge.columns == (link.column,) and display and not says_key:
            via = link.column if edge.parent == link.table or not is_default(edge) else None
            return [ColumnRef(edge.parent, name, via) for name in display]
    return [ref(link)]


def _is_distinct(plan: Plan, base: TableKey, columns: list[ColumnRef]) -> bool:
    """Whether each value is listed once: the question says so, or lists categories."""
    if plan.asks.distinct:
        return True
    asked = [index for index in plan.named_at if is_asked(plan, index)]
    whose = plan.asks.which or any(mark.means("list") and _WHICH_ONES in mark.text for mark in plan.reading.marks)
    if whose and asked and len(columns) == 1 and not _is_display(plan, columns[0]):
        return True
    facts = plan.reading.facts(base)
    shown = {column.column for column in columns}
    if plan.head is not None or shown & {*facts.display} or (facts.key and shown >= {*facts.key}):
        return False
    return all(
        kind_of(plan.reading.schema.column(column.table, column.column)) in ("text", "boolean") for column in columns
    )


def _is_display(plan: Plan, column: ColumnRef) -> bool:
    facts = plan.reading.facts(column.table)
    return column.column in (*facts.display, *facts.key)
