"""Reads who has something elsewhere, or never had: semi and anti joins, also through link tables.

"members who never booked Stretch" and 没买过红茶的会员 select members by rows of other tables of
which a member may have several. Nothing of these tables comes into the result.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from common.meanings import TableKey
from common.text import Text
from common.values import Table
from etl.binding.join_links import JOIN_LINKS, Way, leads_over_parent
from etl.clauses.clause_conditions import ConditionReader
from etl.clauses.clause_names import NamedColumn, Names
from etl.clauses.clause_reading import RequestReading, said
from etl.clauses.clause_tokens import Token, says
from etl.clauses.request_draft import Json
from etl.meaning.decisions import DroppedRows

NEGATIONS = ("not", "lacking", "exclude")
RELATIONS = (*NEGATIONS, "verb", "having")
# What says that the words compare, group or compute, and don't tell who has something.
_OTHERWISE = (
    *("cmp", "null", "notnull", "like", "between", "bucket", "by", "each", "aggregate", "fill"),
    *("sum", "avg", "max", "min", "median", "count", "distinct", "top", "running", "previous"),
    *("join", "left", "inner", "dedup", "instead", "split", "super"),
)
_LEAST_TELLING = 0.8  # quality of a verb that names a column of the table that is looked up


@dataclass(frozen=True)
class _Thing:
    """A row of another table by what it is called: "product X"."""

    named: NamedColumn
    text: str


@dataclass
class _Lookup:
    """The parts of a clause that looks something up.

    Attributes:
        objects: words behind the one that begins the lookup, but the subject.
    """

    subject: Token | None
    objects: list[Token]
    is_negated: bool
    tables: list[Table] = field(default_factory=list)
    thing: "_Thing | None" = None

    @property
    def verbs(self) -> list[Token]:
        """Return the words that say how rows are tied, without naming a table."""
        return [one for one in self.objects if one.means("verb") and one.table is None]

    @property
    def unknown(self) -> list[Token]:
        """Return the words that the database does not know."""
        found: list[Token] = []
        for token in self.objects:
            is_quoted = token.mark.literal is not None and not token.names
            is_unknown = token.mark.is_unknown and not token.mark.is_skippable
            if is_quoted or is_unknown or token.means("unit"):
                found.append(token)
        return found

    @property
    def values(self) -> list[Token]:
        """Return the words that are stored values, days or quoted texts."""
        found: list[Token] = []
        for token in self.objects:
            if token.is_value or token.mark.date is not None:
                found.append(token)
        return found


class LookupClauses:
    """Adds semi and anti joins.

    Args:
        reading: of the request, which is changed.
    """

    def __init__(self, reading: RequestReading) -> None:
        self._reading = reading
        self._names = reading.names

    def subject_of(self, tokens: Sequence[Token]) -> Token | None:
        """Return the word for the table whose rows are selected; None where nothing is."""
        lookup = _lookup_in(tokens)
        if lookup is not None:
            return lookup.subject
        return None

    def is_lookup(self, tokens: Sequence[Token]) -> bool:
        """Tell whether words may say who has something elsewhere."""
        return _lookup_in(tokens) is not None

    def take(self, tokens: Sequence[Token]) -> bool:
        """Add the join that the words say; tell whether they say one."""
        lookup = _lookup_in(tokens)
        if lookup is None:
            return False
        base = self._base(lookup)
        if base is None:
            return said(lookup.objects) in self._names.asked
        lookup.tables = self._tables_of(lookup, base)
        if not self._find_thing(lookup, base):
            return said(lookup.unknown) in self._names.asked
        if not lookup.tables or not self._is_meant(lookup, base):
            return False
        if not self._is_one_way(lookup, base):
            self._refuse(lookup, base)
            return True
        self._look_up(lookup, base)
        return True

    def _base(self, lookup: _Lookup) -> Table | None:
        if lookup.subject is None:
            return self._asked_base(lookup)
        table = self._names.table(lookup.subject, self._reading.order)
        if table is not None:
            self._names.add(table.key)
        return table

    def _asked_base(self, lookup: _Lookup) -> Table | None:
        """Return the table whose rows are selected: of several joined ones it is asked."""
        base = self._reading.base
        if base is None:
            return None
        possible: list[Table] = []
        joined = self._reading.joined()
        keys = set()
        for table in joined:
            keys.add(table.key)
        for table in joined:
            named = self._tables_of(lookup, table)
            lookup.tables = [one for one in named if one.key not in keys]
            if lookup.tables and self._is_meant(lookup, table):
                possible.append(table)
        if len(possible) <= 1:
            if possible:
                return possible[0]
            return None
        words = said(lookup.objects)
        return self._names.one_of_tables(words, possible, self._reading.order)

    def _tables_of(self, lookup: _Lookup, base: Table) -> list[Table]:
        """Return the other tables that the words name, by themselves or by a value."""
        keys: dict[TableKey, None] = {}
        for token in lookup.objects:
            key = token.table
            is_of_other = token.is_value and not self._is_own(token)
            is_telling = token.means("verb") and token.mark.quality >= _LEAST_TELLING
            if key is None and (is_of_other or is_telling):
                key = token.mark.links[0].table
            if key is not None and key != base.key:
                keys[key] = None
        found: list[Table] = []
        for key in keys:
            found.append(self._names.of(key))
        return found

    def _find_thing(self, lookup: _Lookup, base: Table) -> bool:
        """Find what unknown words call a row of: "product X"; tell whether that is clear."""
        unknown = lookup.unknown
        if not unknown:
            return True
        tables = lookup.tables or self._tables_behind(base)
        columns: list[NamedColumn] = []
        for table in tables:
            columns += self._names.shown_columns(table)
        if not columns:
            return False
        text = said(unknown)
        named = self._names.only("column", text, columns, self._reading.order)
        if named is None:
            return False
        lookup.thing = _Thing(named, text)
        lookup.objects = [token for token in lookup.objects if token not in unknown]
        if named.table not in lookup.tables:
            lookup.tables.append(named.table)
        return True

    def _tables_behind(self, base: Table) -> list[Table]:
        """Return the tables of which a row of the base may have several."""
        found: list[Table] = []
        for table in self._reading.catalog.tables:
            ways = self._ways(base, table)
            if any(_is_repeating(way) and not leads_over_parent(way) for way in ways):
                found.append(table)
        return found

    def _is_own(self, token: Token) -> bool:
        """Tell whether a table of the request stores the value."""
        return any(link.table in self._names.sources for link in token.links("value"))

    def _is_meant(self, lookup: _Lookup, base: Table) -> bool:
        """Tell whether rows are selected by others, of which each may have several.

        A value of a row that the base refers to is a condition like any other.
        """
        ways = []
        for table in lookup.tables:
            for way in self._ways(base, table):
                ways.append(way)
        if not ways:
            return lookup.is_negated
        if any(_is_repeating(way) for way in ways):
            is_said = bool(lookup.verbs) or bool(lookup.values) or lookup.thing is not None
            return lookup.is_negated or is_said
        return lookup.is_negated and not lookup.values

    def _is_one_way(self, lookup: _Lookup, base: Table) -> bool:
        """Tell whether some way leads over all tables that the words name."""
        if len(lookup.tables) == 1:
            return True  # binding asks for the key, or says that there is none
        named = {table.key for table in lookup.tables}
        links = JOIN_LINKS.of(self._reading.catalog)
        for table in lookup.tables:
            for way in links.all_ways(base.key, table.key):
                if named <= {link.right for link in way}:
                    return True
        return False

    def _refuse(self, lookup: _Lookup, base: Table) -> None:
        one = self._names.label(base)
        others = ", ".join(self._names.label(table) for table in lookup.tables)
        text = Text(
            f"{one} 与 {others} 之间没有最多三步的已声明关联。",
            f"No way of three declared joins at most leads from {one} to {others}.",
        )
        self._reading.findings.refuse("no_join_path", text)

    def _ways(self, base: Table, table: Table) -> Sequence[Way]:
        return JOIN_LINKS.of(self._reading.catalog).ways(base.key, table.key)

    # --------------------------------------------------------------------------
    # the join

    def _look_up(self, lookup: _Lookup, base: Table) -> None:
        far = max(lookup.tables, key=lambda table: self._distance(base, table))
        names = self._names.about(self._with_those_between(base, far, lookup.tables))
        for table in (far, *lookup.tables):
            names.call(table, self._free_name(table))
        for parameters in self._filters(lookup, names):
            self._reading.draft.add_row_filter(parameters["conditions"], parameters["table"])
        how = "anti" if lookup.is_negated else "semi"
        right = names.name_of(far)
        for table in lookup.tables:
            self._reading.lookups[names.name_of(table)] = table
        left = self._names.name_of(base)
        self._reading.draft.add_join({"left": left, "right": right, "how": how})
        self._assume(lookup, base, far)

    def _distance(self, base: Table, table: Table) -> int:
        return min(len(way) for way in self._ways(base, table) or [()])

    def _with_those_between(
        self, base: Table, far: Table, named: Sequence[Table]
    ) -> list[TableKey]:
        """Return the named tables, and those on ways to the farthest, whose dates may be meant."""
        keys = dict.fromkeys(table.key for table in named)
        for way in self._ways(base, far):
            keys.update(dict.fromkeys(link.right for link in way))
        found: list[TableKey] = []
        for key in keys:
            if key != base.key:
                found.append(key)
        return found

    def _free_name(self, table: Table) -> str:
        """Return what the table is called as one that is only looked up."""
        name = self._names.name_of(table)
        taken = set()
        for key in self._names.sources:
            taken.add(self._names.name_of(self._names.of(key)))
        taken.update(self._reading.lookups)
        number, free = 2, name
        while free in taken:
            free = f"{name}_{number}"
            number += 1
        return free

    def _filters(self, lookup: _Lookup, names: Names) -> Iterator[Json]:
        """Yield the conditions on each table that is looked up."""
        tokens: list[Token] = []
        for token in lookup.objects:
            is_condition = token.table is None and token not in lookup.verbs
            if is_condition:
                tokens.append(token)
        reader = ConditionReader(tokens, names, self._reading.findings, self._reading.order)
        reading = reader.read(excludes=False)
        for word in reading.uncovered:
            self._reading.uncovered(word)
        by_table: dict[str, list[Json]] = {}
        if lookup.thing is not None:
            table, column = lookup.thing.named.table, lookup.thing.named.column.name
            reference = names.reference(table, column)
            called = {"column": reference, "operator": "=", "value": lookup.thing.text}
            by_table[names.name_of(table)] = [called]
        for condition in reading.conditions:
            owners = set()
            for one in condition.get("any", [condition]):
                owners.add(one["column"].partition(".")[0])
            if len(owners) != 1:
                self._reading.uncovered(said(tokens))
                continue
            by_table.setdefault(owners.pop(), []).append(condition)
        for name, conditions in by_table.items():
            yield {"table": name, "conditions": conditions}

    def _assume(self, lookup: _Lookup, base: Table, far: Table) -> None:
        """Note what a verb is taken for, and that nothing is added or repeated."""
        one, other = self._names.label(base), self._names.label(far)
        verb = said(lookup.verbs)
        meant = Text(f"“{verb}”理解为", f"“{verb}” is taken as ") if verb else Text("", "")
        if lookup.is_negated:
            rows = Text(
                f"{one} 中在 {other} 里没有对应行的行",
                f"rows of {one} without such a row of {other}",
            )
        else:
            rows = Text(
                f"{one} 中在 {other} 里有对应行的行，每行只计一次",
                f"rows of {one} with such a row of {other}, each once",
            )
        text = Text(f"{meant.zh}{rows.zh}。", f"{meant.en}{rows.en}.")
        order = len(self._reading.draft.operations)
        decides = DroppedRows(order, self._names.name_of(base))
        self._reading.findings.assume("looked_up", text, order, decides=decides)


def _is_repeating(way: Way) -> bool:
    """Tell whether a row at the beginning of the way may meet several at its end."""
    return any(not link.is_referencing for link in way)


def _lookup_in(tokens: Sequence[Token]) -> _Lookup | None:
    """Return the parts of a lookup; None where the words say something else."""
    place = _place_of_relation(tokens)
    if place is None or says(tokens, *_OTHERWISE):
        return None
    subject = _subject_of(tokens[:place], tokens[place:])
    objects = [token for token in tokens[place:] if token is not subject]
    if not _is_said(tokens, objects):
        return None
    named = [token for token in objects if not token.means("which", *NEGATIONS)]
    negations = sum(token.means(*NEGATIONS) for token in tokens)
    return _Lookup(subject, named, is_negated=negations % 2 == 1)


def _is_said(tokens: Sequence[Token], objects: Sequence[Token]) -> bool:
    """Tell whether a word ties rows; "exclude" and "without" alone do before a table only."""
    if says(tokens, "not", "lacking", "verb", "having"):
        return True
    return any(token.table is not None for token in objects)


def _place_of_relation(tokens: Sequence[Token]) -> int | None:
    """Return the place of the word that says how rows are tied, behind the subject's.

    Behind "exclude" it is another word: "exclude users who bought …", but "without orders".
    """
    own = _first(tokens, "which", *(kind for kind in RELATIONS if kind != "exclude"))
    return _first(tokens, *RELATIONS) if own is None else own


def _first(tokens: Sequence[Token], *kinds: str) -> int | None:
    """Return the place of the first word of one of these kinds."""
    for place, token in enumerate(tokens):
        if token.means(*kinds):
            return place
    return None


def _subject_of(before: Sequence[Token], behind: Sequence[Token]) -> Token | None:
    """Return the word for the table whose rows are selected."""
    for token in before:
        if token.table is not None:
            return token
    return _subject_behind(behind)


def _subject_behind(tokens: Sequence[Token]) -> Token | None:
    """Return the table's word behind 的: 没有订单的会员."""
    for before, token in zip(reversed(tokens[:-1]), reversed(tokens[1:]), strict=True):
        if token.table is not None and before.means("of") and not before.text.isascii():
            return token
    return None
