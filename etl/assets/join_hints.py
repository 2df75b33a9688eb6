"""How tables may be joined: what somebody declared is accepted, what names suggest is not."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from common.values import Catalog, Table
from etl.assets.table_layers import short_name
from etl.binding.join_links import JOIN_LINKS, JoinLink, is_unique, likely_links
from etl.lineage.view_joins import ViewJoin
from etl.schemas.knowledge_context import Cardinality, HintOrigin, JoinHint

_DECLARED = 1.0
_IN_VIEW = 0.9
_SUGGESTED = 0.5  # the likeliest of the joins that names suggest; each further one is less likely
# By whether a value of the left and of the right columns stands in one row at most.
_CARDINALITIES: Mapping[tuple[bool, bool], Cardinality] = {
    (True, True): "1:1",
    (True, False): "1:n",
    (False, True): "n:1",
    (False, False): "n:m",
}


def join_hints(
    tables: Sequence[Table], catalog: Catalog, joins: Sequence[ViewJoin] = ()
) -> list[JoinHint]:
    """Return the joins between these tables; the left side refers to the right one.

    Views are looked at where nothing is declared between two tables, names where no view says it.

    Args:
        joins: what views join.
    """
    hints: list[JoinHint] = []
    for table in tables:
        hints += _declared_hints(table, table, catalog)

    for left, right in combinations(tables, 2):
        between = list(_declared_hints(left, right, catalog))
        between = between or list(_in_views(left, right, catalog, joins))
        hints += between or _suggested_hints(left, right, catalog)

    return hints


def _declared_hints(left: Table, right: Table, catalog: Catalog) -> Iterator[JoinHint]:
    for link in _once(JOIN_LINKS.of(catalog).between(left.key, right.key)):
        origin: HintOrigin = "semantic" if link.is_semantic else "foreign_key"
        yield _hint(link, catalog, origin, _DECLARED)


def _in_views(
    left: Table, right: Table, catalog: Catalog, joins: Sequence[ViewJoin]
) -> Iterator[JoinHint]:
    for join in joins:
        if {join.left, join.right} != {left.key, right.key}:
            continue

        first, second = catalog.by_key[join.left], catalog.by_key[join.right]
        # The side whose columns tell no row apart is the one that refers.
        is_referencing = not is_unique(first, join.left_columns)
        is_referencing = is_referencing or is_unique(second, join.right_columns)
        link = JoinLink(
            join.left, join.left_columns, join.right, join.right_columns, is_referencing
        )
        for once in _once([link]):
            yield _hint(once, catalog, "view", _IN_VIEW)


def _suggested_hints(left: Table, right: Table, catalog: Catalog) -> Iterator[JoinHint]:
    for place, link in enumerate(_once(likely_links(left, right, catalog)), 1):
        yield _hint(link, catalog, "name", _SUGGESTED / place)


def _once(links: Sequence[JoinLink]) -> list[JoinLink]:
    """Return the links seen from the side that refers; a table's link to itself comes twice."""
    seen = [link if link.is_referencing else link.reversed for link in links]
    return list(dict.fromkeys(seen))


def _hint(link: JoinLink, catalog: Catalog, origin: HintOrigin, confidence: float) -> JoinHint:
    left, right = catalog.by_key[link.left], catalog.by_key[link.right]
    sides = (is_unique(left, link.left_columns), is_unique(right, link.right_columns))
    return JoinHint(
        left=short_name(left, catalog),
        right=short_name(right, catalog),
        left_columns=list(link.left_columns),
        right_columns=list(link.right_columns),
        cardinality=_CARDINALITIES[sides],
        origin=origin,
        confidence=round(confidence, 2),
        accepted=origin != "name",
    )
