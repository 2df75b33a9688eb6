"""Joins of an intent, bound: by which columns, through which tables, and what repeats rows."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import filterfalse

from common.text import Text
from common.values import Catalog, Table
from etl.binding.intent_checks import CheckedOperation, require
from etl.binding.join_links import (
    JOIN_LINKS,
    JoinLink,
    JoinPath,
    are_comparable,
    is_unique,
    leads_over_parent,
    likely_links,
)
from etl.binding.request_findings import RequestFindings, choice, choices_of
from etl.binding.scope import IntentScope
from etl.meaning.bound import BoundColumn, BoundSource, JoinSourceStep
from etl.meaning.decisions import JoinedRows
from etl.schemas.parameters import JoinHow, JoinParameters

_LOOKING_UP = ("semi", "anti")

Pairs = tuple[tuple[BoundColumn, BoundColumn], ...]


@dataclass(frozen=True)
class PlannedJoin:
    """A join whose columns are decided.

    Attributes:
        narrows_left: whether it narrows the rows of `left` before that is joined itself.
    """

    order: int
    left: str
    right: str
    how: JoinHow
    on: Pairs
    narrows_left: bool = False


@dataclass(frozen=True)
class JoinedPair:
    """Two joined sources, and whether a row of the one meets one row of the other at most."""

    left: str
    right: str
    is_left_unique: bool
    is_right_unique: bool


@dataclass
class JoinTree:
    """The sources that are joined so far.

    Attributes:
        keys: columns by which a dedup left one row of a source.
        looked_up: sources that were only looked up (semi, anti).
        is_open: whether a join is not decided yet, so that nothing can be said of repeated rows.
    """

    scope: IntentScope
    base: str
    pairs: list[JoinedPair] = field(default_factory=list)
    joined: list[str] = field(default_factory=list)
    looked_up: set[str] = field(default_factory=set)
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    is_open: bool = False

    def step(self, planned: PlannedJoin) -> JoinSourceStep:
        """Add a planned join; return its step."""
        left_names = [left.name for left, _ in planned.on]
        right_names = [right.name for _, right in planned.on]
        is_left_unique = self._is_unique(planned.left, left_names)
        is_right_unique = self._is_unique(planned.right, right_names)
        is_added = planned.how in ("left", "inner")
        if is_added:
            pair = JoinedPair(planned.left, planned.right, is_left_unique, is_right_unique)
            self.pairs.append(pair)
        else:
            self.looked_up.add(planned.right)

        self.joined.append(planned.right)
        is_multiple = is_added and not is_right_unique
        source = planned.left if planned.narrows_left else None
        return JoinSourceStep(
            planned.order, planned.right, planned.how, planned.on, is_multiple, source
        )

    def _is_unique(self, source: str, columns: Sequence[str]) -> bool:
        key = self.keys.get(source)
        if key is not None and set(key) <= set(columns):
            return True

        return is_unique(self.scope.sources[source].table, columns)

    def single(self, source: str) -> frozenset[str]:
        """Return the sources of which a row of `source` meets one row at most; itself as well."""
        reached = {source}
        grows = True
        while grows:
            before = len(reached)
            for pair in self.pairs:
                if pair.left in reached and pair.is_right_unique:
                    reached.add(pair.right)
                if pair.right in reached and pair.is_left_unique:
                    reached.add(pair.left)

            grows = len(reached) > before

        return frozenset(reached)


class JoinPlanner:
    """Decides by which columns, and through which tables, sources are joined.

    It goes through the joins in their order, before anything else is bound.
    """

    def __init__(self, catalog: Catalog, findings: RequestFindings, scope: IntentScope) -> None:
        self._catalog = catalog
        self._findings = findings
        self._scope = scope
        self._links = JOIN_LINKS.of(catalog)
        self._joined: list[str] = []
        self._taken: list[PlannedJoin] = []

    def begin(self, base: str) -> None:
        """Say which source is the base."""
        self._joined = [base]

    def leave_open(self, right: str) -> None:
        """Go on as if a table were joined whose join is not decided yet."""
        name = self._scope.names.get(right)
        if name is not None and name not in self._joined:
            self._joined.append(name)

    @property
    def joined(self) -> Sequence[str]:
        """Return the names of the sources that are joined so far, the base first."""
        return self._joined

    def plan(self, operation: CheckedOperation, parameters: JoinParameters) -> list[PlannedJoin]:
        """Return the joins of an operation; several where it leads through other tables.

        A table that is only looked up may be looked into further, which narrows it before that.

        Raises:
            NotBound
            InvalidRequest: the join does not fit those before it.
        """
        order, given = operation.order, operation.field
        left = self._scope.source_named(parameters.left, order).name
        right = self._scope.source_named(parameters.right, order).name
        how: JoinHow = parameters.how or "left"
        is_symmetric = parameters.how in (None, "inner")
        if is_symmetric and right in self._joined and left not in self._joined:
            left, right = right, left

        self._check_sides(left, right, given)
        self._check_seen(left, how, order)
        if parameters.how is None:
            self._assume_left(left, right, order)
        if parameters.on is None:
            return self._with_noted(self._find_joins(left, right, how, order))

        on = self._given_pairs(parameters.on, left, right, operation)
        for one, _ in on:
            if one.source != left:
                self._check_seen(one.source, "left", order)

        is_looked_up = self._is_looked_up(left)
        return self._with_noted([PlannedJoin(order, left, right, how, on, is_looked_up)])

    def plan_unsaid(self, right: str) -> list[PlannedJoin]:
        """Return the joins that bring in a source that no operation joins.

        Raises:
            NotBound
        """
        left = self._joined[0]
        self._assume_left(left, right, 0)
        return self._with_noted(self._find_joins(left, right, "left", 0))

    def _with_noted(self, planned: list[PlannedJoin]) -> list[PlannedJoin]:
        """Note that these joins are planned, and return them."""
        self._taken.extend(planned)
        self._joined.extend(join.right for join in planned)
        return planned

    def _check_sides(self, left: str, right: str, given: str) -> None:
        require(
            left in self._joined,
            f"{given}.left",
            f"表 {left} 尚未连接；请先连接它。",
            f"{left} is not joined yet; join it before.",
        )
        require(
            right not in self._joined,
            f"{given}.right",
            f"表 {right} 已经连接；再次连接请使用另一个 alias。",
            f"{right} is joined already; use another `alias` to join it again.",
        )

    def _is_looked_up(self, name: str) -> bool:
        """Tell whether a source is joined by lookups (semi, anti) alone."""
        return any(join.right == name and join.how in _LOOKING_UP for join in self._taken)

    def _check_seen(self, left: str, how: JoinHow, order: int) -> None:
        """Refuse to join rows to those of a source that is only looked up."""
        if how in _LOOKING_UP or not self._is_looked_up(left):
            return

        raise self._findings.refuse(
            "unsupported",
            Text(
                f"操作 {order}：{left} 只用于 semi 或 anti 连接，只能再对它做 semi 或 anti 连接。",
                f"Operation {order}: {left} is only looked up (semi, anti), so only lookups can "
                f"be joined to it.",
            ),
        )

    def _assume_left(self, left: str, right: str, order: int) -> None:
        text = Text(
            f"{left} 与 {right} 按左连接：{left} 的行全部保留。",
            f"{left} is left joined with {right}: all rows of {left} stay.",
        )
        decides = JoinedRows(left, without=right)
        self._findings.assume("left_join", text, order, decides=decides)

    # given columns

    def _given_pairs(
        self, on: Sequence[Sequence[str]], left: str, right: str, operation: CheckedOperation
    ) -> Pairs:
        pairs = []
        for place, (one, other) in enumerate(on):
            here = f"{operation.field}.on[{place}]"
            first = self._scope.column(one, operation.order, table=left)
            second = self._scope.column(other, operation.order, table=right)
            if first.source == right and second.source != right:
                first, second = second, first

            self._check_pair(first, second, right, here)
            pairs.append((first, second))

        return tuple(pairs)

    def _check_pair(self, first: BoundColumn, second: BoundColumn, right: str, field: str) -> None:
        require(
            second.source == right and first.source in self._joined,
            field,
            f"应为已连接的表的一列与 {right} 的一列。",
            f"it must pair a column of a joined table with one of {right}.",
        )
        one, two = self._scope.type_of(first), self._scope.type_of(second)
        require(
            are_comparable(one, two),
            field,
            f"类型 {one} 与 {two} 不能比较。",
            f"the types {one} and {two} can't be compared.",
        )

    # found columns

    def _find_joins(self, left: str, right: str, how: JoinHow, order: int) -> list[PlannedJoin]:
        left_source, right_source = self._scope.sources[left], self._scope.sources[right]
        direct = self._direct_links(left_source.table, right_source.table)
        ways: list[JoinPath] = [(link,) for link in direct]
        if not ways:
            ways = self._through_others(left_source.table, right_source.table, how)

        likely: list[JoinLink] = []
        if all(leads_over_parent(way) for way in ways):
            likely = likely_links(left_source.table, right_source.table, self._catalog)
        if likely or not ways:
            ways = [(self._asked_key(left_source, right_source, likely, order),)]

        way = self._asked_way(ways, left, right, order)
        return self._along(way, left, right, how, order)

    def _direct_links(self, left: Table, right: Table) -> list[JoinLink]:
        """Return the joins of two tables; of a table to itself, from the referring side."""
        links = self._links.between(left.key, right.key)
        if left.key != right.key:
            return links

        referring = []
        for link in links:
            if link.is_referencing:
                referring.append(link)

        return referring

    def _through_others(self, left: Table, right: Table, how: JoinHow) -> list[JoinPath]:
        """Return the ways over other tables: the shortest, for a lookup all of them.

        Rows that are only looked up are not seen in the result, so that nobody would notice which
        way was taken. Ways over the intent's own tables come before others, then those that don't
        join all children of a parent.
        """
        if how in _LOOKING_UP:
            ways = self._over_named(self._links.all_ways(left.key, right.key))
        else:
            ways = self._links.ways(left.key, right.key)

        named = {source.table.key for source in self._scope.sources.values()}
        over_named = []
        for way in ways:
            if named.issuperset(link.right for link in way):
                over_named.append(way)

        over_no_parent = list(filterfalse(leads_over_parent, ways))
        return over_named or over_no_parent or ways

    def _over_named(self, ways: Sequence[JoinPath]) -> list[JoinPath]:
        """Return the ways that lead over most of the sources that are not joined otherwise."""
        unjoined = set()
        for name, source in self._scope.sources.items():
            if name not in self._joined:
                unjoined.add(source.table.key)

        by_count: dict[int, list[JoinPath]] = defaultdict(list)
        for way in ways:
            count = sum(link.right in unjoined for link in way)
            by_count[count].append(way)

        most = max(by_count, default=0)
        return by_count[most]

    def _asked_way(self, ways: Sequence[JoinPath], left: str, right: str, order: int) -> JoinPath:
        """Return the only way, or the one that was chosen."""
        if len(ways) == 1:
            return ways[0]

        by_value = {}
        for way in ways:
            by_value[" > ".join(link.reference for link in way)] = way

        prompt = Text(
            f"{left} 与 {right} 有多种连接方式，用哪一种？",
            f"There are several ways to join {left} and {right}. Which one?",
        )
        choices = choices_of(by_value)
        topic = f"{left} {right}"
        return by_value[self._findings.choose("join_path", topic, prompt, choices, order)]

    def _asked_key(
        self, left: BoundSource, right: BoundSource, likely: Sequence[JoinLink], order: int
    ) -> JoinLink:
        """Return the join that was chosen among those that only names suggest."""
        if not likely:
            raise self._findings.refuse(
                "no_join_path",
                Text(
                    f"{left.name} 与 {right.name} 之间没有已声明的关联；请在 on 中给出关联列。",
                    f"No declared join leads from {left.name} to {right.name}; give the columns "
                    f"in `on`.",
                ),
            )

        by_value = {}
        for link in likely:
            by_value[link.reference] = link

        prompt = Text(
            f"{left.name} 与 {right.name} 之间没有声明外键，用哪一列关联？",
            f"No foreign key joins {left.name} and {right.name}. Which column refers?",
        )
        choices = []
        for value, link in by_value.items():
            choices.append(choice(value, _pairs_shown(link)))

        topic = f"{left.name} {right.name}"
        return by_value[self._findings.choose("join_key", topic, prompt, choices, order)]

    def _along(
        self, way: JoinPath, left: str, right: str, how: JoinHow, order: int
    ) -> list[PlannedJoin]:
        """Return the joins along a way, but those that are there already."""
        if how in _LOOKING_UP:
            return self._lookup_along(way, left, right, how, order)

        planned = []
        here = left
        for place, link in enumerate(way):
            is_last = place == len(way) - 1
            joined_already = None if is_last else self._joined_by(here, link)
            if joined_already is not None:
                here = joined_already
                continue

            name = right if is_last else self._added_source(link.right)
            planned.append(PlannedJoin(order, here, name, how, _pairs(here, name, link)))
            here = name

        return planned

    def _lookup_along(
        self, way: JoinPath, left: str, right: str, how: JoinHow, order: int
    ) -> list[PlannedJoin]:
        """Return the lookup, behind those that narrow the tables on its way, the farthest first."""
        planned: list[PlannedJoin] = []
        here = left
        narrows_left = self._is_looked_up(left)
        for place, link in enumerate(way):
            is_last = place == len(way) - 1
            name = right if is_last else self._added_source(link.right)
            own_how: JoinHow = how if place == 0 else "semi"
            on = _pairs(here, name, link)
            planned.append(PlannedJoin(order, here, name, own_how, on, narrows_left))
            here = name
            narrows_left = True

        return planned[::-1]

    def _joined_by(self, here: str, link: JoinLink) -> str | None:
        """Return the source that is joined by these very columns already."""
        link_columns = set(zip(link.left_columns, link.right_columns, strict=True))
        for join in self._taken:
            if join.how in _LOOKING_UP:
                continue

            for side, there, columns in _both_directions(join):
                is_meant = side == here and columns == link_columns
                if is_meant and self._scope.sources[there].table.key == link.right:
                    return there

        return None

    def _added_source(self, key: tuple[str, str]) -> str:
        """Return the source of a table on the way, which may not be among those of the intent."""
        for name, source in self._scope.sources.items():
            if source.table.key == key and name not in self._joined:
                return name

        table = self._catalog.by_key[key]
        name = _free_name(table.name, self._scope.sources)
        self._scope.sources[name] = BoundSource(name, table)
        self._scope.names.setdefault(name, name)
        return name


def _both_directions(join: PlannedJoin) -> list[tuple[str, str, set[tuple[str, str]]]]:
    """Return a join as seen from each side: the side, the other one, the pairs of columns."""
    forward = {(one.name, other.name) for one, other in join.on}
    backward = {(other, one) for one, other in forward}
    return [(join.left, join.right, forward), (join.right, join.left, backward)]


def _free_name(name: str, taken: Iterable[str]) -> str:
    number, free = 2, name
    while free in taken:
        free = f"{name}_{number}"
        number += 1

    return free


def _pairs(left: str, right: str, link: JoinLink) -> Pairs:
    columns = zip(link.left_columns, link.right_columns, strict=True)
    pairs = []
    for one, other in columns:
        pairs.append((BoundColumn(left, one), BoundColumn(right, other)))

    return tuple(pairs)


def _pairs_shown(link: JoinLink) -> str:
    pairs = zip(link.left_columns, link.right_columns, strict=True)
    return ", ".join(f"{link.left[1]}.{one} = {link.right[1]}.{other}" for one, other in pairs)
