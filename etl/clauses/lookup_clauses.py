"""Reads clauses that select rows by those of other tables: semi and anti joins.

"members who never booked Stretch" and 没买过红茶的会员 select members by rows of other tables of
which a member may have several. Nothing of these tables comes into the result.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise, product

from common.meanings import TableKey
from common.text import Text
from common.values import Table
from etl.binding.join_links import JOIN_LINKS, JoinPath, leads_over_parent
from etl.clauses.clause_names import NamedColumn, NameResolver
from etl.clauses.clause_reading import ClauseReader, text_of_words
from etl.clauses.clause_tokens import Token, place_of, says, table_words, words_without
from etl.clauses.clause_words import means_having
from etl.clauses.request_draft import Json, alternatives_in, condition, free_name, tables_in
from etl.meaning.decisions import DroppedRows

_NEGATIONS = ("not", "lacking", "exclude")
# Words that tie rows wherever they stand; "exclude" does before a table only.
_TYING = ("not", "lacking", "verb", "having")
# Words of clauses that group or compute, and therefore look nothing up.
_COMPUTING = (
    *("bucket", "by", "each", "aggregate", "fill"),
    *("sum", "avg", "max", "min", "median", "count", "distinct", "top", "running", "previous"),
    *("join", "left", "inner", "dedup", "instead", "split", "super"),
)
_COMPARING = ("cmp", "null", "notnull", "like", "between")
_ROWS_WITHOUT = Text(
    "{one} 中在 {other} 里没有对应行的行", "rows of {one} without such a row of {other}"
)
_ROWS_WITH = Text(
    "{one} 中在 {other} 里有对应行的行，每行只计一次",
    "rows of {one} with such a row of {other}, each once",
)
_ONE_ROW_EACH = Text(
    "一行只有一个值：要求同时有几个值的行，请分成两步，先选出这些行。",
    "No row has two values of one column. Select the rows that have all of them first, and make "
    "the rest of that in a second request.",
)
_SIDES = ("left", "right")
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
        subject: the word for the table whose rows are selected, if it is said.
        objects: words behind the one that begins the lookup, but the subject.
        own: words before it that say which rows of the subject are meant: "members of Ulm who".
        adverbs: words before it that may be about either: 5月没有订单的会员.
        tables: those that are looked up.
        thing: a row of theirs by what it is called, if the words say one.
    """

    subject: Token | None
    objects: list[Token]
    own: Sequence[Token]
    adverbs: Sequence[Token]
    is_negated: bool
    is_excluding: bool
    is_having: bool = False
    tables: list[Table] = field(default_factory=list)
    thing: _Thing | None = None

    @property
    def verbs(self) -> list[Token]:
        """Return the words that say how rows are tied, without naming a table."""
        verbs: list[Token] = []
        for token in self.objects:
            if token.means("verb") and token.table is None:
                verbs.append(token)

        return verbs

    @property
    def unknown(self) -> list[Token]:
        """Return the words that the database does not know."""
        unknown: list[Token] = []
        for token in self.objects:
            if _is_unknown(token):
                unknown.append(token)

        return unknown

    @property
    def compares(self) -> bool:
        """Tell whether stored values or days say which rows are looked up."""
        return any(token.is_value_or_date for token in self.objects)

    @property
    def says_which(self) -> bool:
        """Tell whether a verb, a value or what a row is called says which rows are looked up."""
        if self.thing is not None or self.compares:
            return True

        return bool(self.verbs)

    @property
    def conditions(self) -> list[Token]:
        """Return the words that say which rows are looked up, without their tables and verbs."""
        verbs = self.verbs
        conditions: list[Token] = []
        for token in self.objects:
            if token.table is None and token not in verbs:
                conditions.append(token)

        return conditions


class LookupClauses(ClauseReader):
    """Adds semi and anti joins."""

    def subject_of(self, tokens: Sequence[Token]) -> Token | None:
        """Return the word for the table whose rows are selected; None where no lookup is said."""
        lookup = _lookup_in(tokens)
        if lookup is not None:
            return lookup.subject

        return None

    def is_lookup(self, tokens: Sequence[Token]) -> bool:
        """Tell whether words may select rows by those of other tables."""
        return _lookup_in(tokens) is not None

    def take(self, tokens: Sequence[Token]) -> bool:
        """Add the join that the words say; tell whether they say one."""
        lookup = _lookup_in(tokens)
        if lookup is None:
            return False

        base = self._base(lookup)
        if base is None:
            return text_of_words(lookup.objects) in self._names.asked

        if not self._choose_tables(lookup, base):
            return True

        lookup.tables = self._tables_of(lookup, base)
        if not self._find_thing(lookup, base):
            return text_of_words(lookup.unknown) in self._names.asked
        if not lookup.tables or not self._is_meant(lookup, base):
            return False
        if not self._is_one_way(lookup, base):
            self._refuse(lookup, base)
            return True

        self._keep_own(lookup, base)
        self._look_up(lookup, base)
        return True

    def _keep_own(self, lookup: _Lookup, base: Table) -> None:
        """Add the conditions on the rows that are selected: "members of Ulm who never booked"."""
        for token in table_words(lookup.own):
            if token.table != base.key:
                self._reading.refuse_word(token.text)

        reading = self._reading.conditions(lookup.own)
        self._keep(lookup, reading.conditions)

    def _keep(self, lookup: _Lookup, conditions: Sequence[Json]) -> None:
        """Add conditions on rows that are selected; of those that go, nothing says how they tie."""
        if not conditions:
            return
        if lookup.is_excluding:
            self._reading.refuse_word(text_of_words([*lookup.own, *lookup.adverbs]))
            return

        self._reading.add_tables_of(conditions)
        self._draft.add_row_filter(conditions)

    def _base(self, lookup: _Lookup) -> Table | None:
        if lookup.subject is None:
            return self._asked_base(lookup)

        table = self._names.table(lookup.subject, self._reading.order)
        if table is not None:
            self._names.add_source(table.key)

        return table

    def _asked_base(self, lookup: _Lookup) -> Table | None:
        """Return the table whose rows are selected: of several joined ones it is asked."""
        joined = self._reading.joined_keys()
        possible: list[Table] = []
        for table in self._reading.joined():
            named = self._tables_of(lookup, table)
            lookup.tables = [named_table for named_table in named if named_table.key not in joined]
            is_possible = bool(lookup.tables) and self._is_meant(lookup, table)
            if is_possible:
                possible.append(table)

        if not possible:
            return None

        words = text_of_words(lookup.objects)
        return self._names.one_of_tables(words, possible, self._reading.order)

    def _choose_tables(self, lookup: _Lookup, base: Table) -> bool:
        """Decide which tables words name that may name several; tell whether none is asked."""
        for place, token in enumerate(lookup.objects):
            if token.table in (None, base.key):
                continue

            table = self._names.table(token, self._reading.order)
            if table is None:
                return False

            lookup.objects[place] = token.naming(table.key)

        return True

    def _tables_of(self, lookup: _Lookup, base: Table) -> list[Table]:
        """Return the other tables that the words name, by themselves or by a value."""
        tables: dict[TableKey, Table] = {}
        for token in lookup.objects:
            key = self._table_named_by(token)
            if key is not None and key != base.key:
                tables[key] = self._names.table_by_key(key)

        return list(tables.values())

    def _table_named_by(self, token: Token) -> TableKey | None:
        """Return the table of a word, of a value of another table, or of a verb that is telling."""
        if token.table is not None:
            return token.table

        is_telling = token.means("verb") and token.mark.quality >= _LEAST_TELLING
        if is_telling:
            return token.mark.links[0].table
        if token.is_value and not self._is_own(token):
            return token.mark.links[0].table

        return None

    def _find_thing(self, lookup: _Lookup, base: Table) -> bool:
        """Find the table whose rows unknown words name: "product X"; tell whether it is clear."""
        unknown = lookup.unknown
        if not unknown:
            return True

        tables = lookup.tables or self._tables_behind(base)
        columns: list[NamedColumn] = []
        for table in tables:
            columns += self._names.shown_columns(table)

        if not columns:
            return False

        text = text_of_words(unknown)
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
        tables: list[Table] = []
        for table in self._reading.catalog.tables:
            if self._has_several(base, table):
                tables.append(table)

        return tables

    def _has_several(self, base: Table, table: Table) -> bool:
        """Tell whether a row of the base may have several of the other table by itself."""
        for way in self._ways(base, table):
            if _is_repeating(way) and not leads_over_parent(way):
                return True

        return False

    def _is_own(self, token: Token) -> bool:
        """Tell whether a table of the request stores the value."""
        return any(link.table in self._names.sources for link in token.links("value"))

    def _is_meant(self, lookup: _Lookup, base: Table) -> bool:
        """Tell whether the words select rows by those of other tables, and are no plain condition.

        A value of a row that the base refers to is a condition like any other.
        """
        ways: list[JoinPath] = []
        for table in lookup.tables:
            ways += self._ways(base, table)

        if any(map(_is_repeating, ways)):
            return lookup.is_negated or lookup.is_having or lookup.says_which
        if not lookup.is_negated:
            return False

        return not ways or not lookup.compares

    def _is_one_way(self, lookup: _Lookup, base: Table) -> bool:
        """Tell whether some way leads over all tables that the words name."""
        if len(lookup.tables) == 1:
            return True  # binding asks for the key, or says that there is none

        named = {table.key for table in lookup.tables}
        links = JOIN_LINKS.of(self._reading.catalog)
        for table in lookup.tables:
            for way in links.all_ways(base.key, table.key):
                passed = {link.right for link in way}
                if named <= passed:
                    return True

        return False

    def _refuse(self, lookup: _Lookup, base: Table) -> None:
        base_label = self._names.label(base)
        other_labels = ", ".join(self._names.label(table) for table in lookup.tables)
        text = Text(
            f"{base_label} 与 {other_labels} 之间没有最多三步的已声明关联。",
            f"No way of three declared joins at most leads from {base_label} to {other_labels}.",
        )
        self._reading.findings.refuse("no_join_path", text)

    def _ways(self, base: Table, table: Table) -> Sequence[JoinPath]:
        return JOIN_LINKS.of(self._reading.catalog).ways(base.key, table.key)

    # --------------------------------------------------------------------------
    # the join

    def _look_up(self, lookup: _Lookup, base: Table) -> None:
        far = max(lookup.tables, key=lambda table: self._distance(base, table))
        names = self._names.for_tables(self._with_those_between(base, far, lookup.tables))
        for table in (far, *lookup.tables):
            names.set_alias(table, self._free_name(table))

        by_table = self._conditions_by_table(lookup, names)
        self._add_adverbs(lookup, names, base, by_table)
        for name, conditions in by_table.items():
            self._draft.add_row_filter(conditions, name)

        for table in lookup.tables:
            self._reading.lookups[names.name_of(table)] = table

        parameters = {
            "left": self._names.name_of(base),
            "right": names.name_of(far),
            "how": "anti" if lookup.is_negated else "semi",
        }
        self._draft.add_join(parameters)
        self._assume(lookup, base, far)

    def _distance(self, base: Table, table: Table) -> int:
        return min(len(way) for way in self._ways(base, table) or [()])

    def _with_those_between(
        self, base: Table, far: Table, named: Sequence[Table]
    ) -> list[TableKey]:
        """Return the named tables, and those on ways to the farthest, whose dates may be meant."""
        keys: dict[TableKey, None] = {}
        for table in named:
            keys[table.key] = None

        for way in self._ways(base, far):
            for link in way:
                keys[link.right] = None

        keys.pop(base.key, None)
        return list(keys)

    def note_owned(self, tokens: Sequence[Token]) -> None:
        """Note the tables of which rows are said to have some: "orders with refunds"."""
        if says(tokens, "join", "left", "inner"):
            return

        for before, token in pairwise(tokens):
            if token.table is not None and means_having(before.text):
                self._reading.owned.add(token.table)

    def look_up_owned(self) -> None:
        """Look up the rows that figures are said to need: nothing else is made of their tables."""
        base = self._reading.base
        if base is None or self._draft.aggregate is None:
            return

        for key in self._names.sources[1:]:
            table = self._names.table_by_key(key)
            is_owned = key in self._reading.owned and self._has_several(base, table)
            if is_owned and not self._is_used(table):
                self._names.drop_source(key)
                self._tie(base, table, (), "semi")
                self._assume_looked_up(Text("", ""), _ROWS_WITH, base, table)

    def _is_used(self, table: Table) -> bool:
        """Tell whether anything names the table but what is looked up."""
        name = self._names.name_of(table)
        if any(name in (one["left"], one["right"]) for one in self._draft.of("join")):
            return True

        return bool(self._draft.row_conditions(name)) or self._draft.names_in_result(name)

    def look_up_selecting(self) -> None:
        """Look up the rows of which the base has several and nothing but conditions is said.

        "ships that arrived in March" are ships, each once, unless something is made of the rows
        of both tables.
        """
        base = self._reading.base
        if base is None or self._reading.is_follow_up:
            return

        for key in self._names.sources[1:]:
            table = self._names.table_by_key(key)
            if not self._has_several(base, table):
                continue
            if key in self._reading.selecting and not self._makes_more_than_rows():
                self._look_up_selected(base, table)
            elif len(self._rows_wanted(self._names.name_of(table))) > 1:
                self._reading.findings.refuse("unsupported", _ONE_ROW_EACH)

    def _look_up_selected(self, base: Table, table: Table) -> None:
        name = self._names.name_of(table)
        wanted = self._rows_wanted(name)
        self._draft.take_row_conditions(name)
        self._names.drop_source(table.key)
        for conditions in wanted:
            self._tie(base, table, conditions, "semi")
            self._assume_looked_up(Text("", ""), _ROWS_WITH, base, table)

    def leave_out(self) -> None:
        """Leave out the rows of which any row of another table fulfils an exclusion.

        "exclude refunds.amount > 100" says which orders go, unless something is made of refunds.
        """
        base = self._reading.base
        if base is None:
            return

        for exclusion in self._reading.exclusions:
            table = self._excluding_table(base, exclusion.said)
            if table is None or self._draft.names_in_result(self._names.name_of(table)):
                continue

            self._draft.remove_conditions(exclusion.kept)
            self._tie(base, table, exclusion.said, "anti")
            self._assume_looked_up(Text("", ""), _ROWS_WITHOUT, base, table)
            if not self._is_used(table):
                self._names.drop_source(table.key)

    def _excluding_table(self, base: Table, conditions: Sequence[Json]) -> Table | None:
        """Return the table that conditions are about, if the base has several of its rows."""
        owners = set(tables_in(conditions))
        if len(owners) != 1:
            return None

        table = self._names.table_named(owners.pop())
        if table is None or not self._has_several(base, table):
            return None

        return table

    def _tie(self, base: Table, table: Table, conditions: Sequence[Json], how: str) -> None:
        """Add the join to a table that is looked up, by a name of its own."""
        name = self._free_name(table)
        _rename_columns(conditions, self._names.name_of(table), name)
        self._reading.lookups[name] = table
        if conditions:
            self._draft.add_row_filter(conditions, name)

        self._draft.add_join({"left": self._names.name_of(base), "right": name, "how": how})

    def _rows_wanted(self, name: str) -> list[list[Json]]:
        """Return the conditions on a table, apart for each of its rows that has to be there.

        "tagged cold and fragile" are two rows: none has two values of one column.
        """
        equal: dict[str, list[Json]] = {}
        others: list[Json] = []
        for one in self._draft.row_conditions(name):
            alternatives = self._values_apart(one)
            if alternatives:
                equal.setdefault(one["column"], []).extend(alternatives)
            else:
                others.append(one)

        rows = [[*others, *chosen] for chosen in product(*equal.values())]
        return deepcopy(rows)

    def _values_apart(self, one: Json) -> list[Json]:
        """Return a condition for each value that a row alone can't have; none for other ones."""
        if one.get("operator") == "=":
            return [one]
        if id(one) not in map(id, self._reading.together):
            return []

        return [condition(one["column"], "=", value) for value in one["value"]]

    def _makes_more_than_rows(self) -> bool:
        """Tell whether rows are joined, grouped or ranked, rather than only selected."""
        return any(action != "filter" for action, _ in self._draft.operations)

    def keep_apart(self) -> None:
        """Give a table that is looked up another name, where figures are of its rows as well."""
        own = {self._names.name_of(self._names.table_by_key(key)) for key in self._names.sources}
        for name in own.intersection(self._reading.lookups):
            table = self._reading.lookups.pop(name)
            free = free_name(name, {*own, *self._reading.lookups})
            self._reading.lookups[free] = table
            self._rename(name, free)

    def _rename(self, name: str, new_name: str) -> None:
        for action, parameters in self._draft.operations:
            if action == "join" and parameters["how"] in ("semi", "anti"):
                renamed = {side: new_name for side in _SIDES if parameters[side] == name}
                parameters.update(renamed)
            elif action == "filter" and parameters.get("table") == name:
                parameters["table"] = new_name
                _rename_columns(parameters["conditions"], name, new_name)

    def _free_name(self, table: Table) -> str:
        """Return a name for a table that is looked up, other than those of the request's tables."""
        taken = set(self._reading.lookups)
        for key in self._names.sources:
            taken.add(self._names.name_of(self._names.table_by_key(key)))

        return free_name(self._names.name_of(table), taken)

    def _conditions_by_table(self, lookup: _Lookup, names: NameResolver) -> dict[str, list[Json]]:
        """Return the conditions on each table that is looked up, by what the table is called."""
        tokens = lookup.conditions
        reading = self._reading.conditions(tokens, names=names)
        by_table: dict[str, list[Json]] = {}
        if lookup.thing is not None:
            table, column = lookup.thing.named.table, lookup.thing.named.column.name
            called = condition(names.reference(table, column), "=", lookup.thing.text)
            by_table[names.name_of(table)] = [called]

        for comparison in reading.conditions:
            owner = _owner(comparison)
            if owner is not None:
                by_table.setdefault(owner, []).append(comparison)
            else:
                self._reading.refuse_word(text_of_words(tokens))

        return by_table

    def _add_adverbs(
        self, lookup: _Lookup, names: NameResolver, base: Table, by_table: dict[str, list[Json]]
    ) -> None:
        """Add conditions of words that may be about the subject or what is looked up.

        Columns and values tell; of a day the user is asked where several dates may be meant.
        """
        either = names.with_table(base)
        own: list[Json] = []
        for comparison in self._reading.conditions(lookup.adverbs, names=either).conditions:
            owner = _owner(comparison)
            if owner is None or owner == either.name_of(base):
                own.append(comparison)
            else:
                by_table.setdefault(owner, []).append(comparison)

        self._keep(lookup, own)

    def _assume(self, lookup: _Lookup, base: Table, far: Table) -> None:
        """Note as an assumption which rows are kept, and what a verb is taken for."""
        beginning = Text("", "")
        if lookup.verbs:
            verb = text_of_words(lookup.verbs)
            beginning = Text(f"“{verb}”理解为", f"“{verb}” is taken as ")

        self._assume_looked_up(
            beginning, _ROWS_WITHOUT if lookup.is_negated else _ROWS_WITH, base, far
        )

    def _assume_looked_up(self, beginning: Text, form: Text, base: Table, far: Table) -> None:
        labels = {"one": self._names.label(base), "other": self._names.label(far)}
        text = Text(
            f"{beginning.zh}{form.zh.format(**labels)}。",
            f"{beginning.en}{form.en.format(**labels)}.",
        )
        order = len(self._draft.operations)
        decides = DroppedRows(order, self._names.name_of(base))
        self._reading.findings.assume("looked_up", text, order, decides=decides)


def _owner(row_condition: Json) -> str | None:
    """Return the table that a condition is about; None of alternatives about several."""
    owners = set(tables_in([row_condition]))
    if len(owners) == 1:
        return owners.pop()

    return None


def _is_unknown(token: Token) -> bool:
    """Tell whether the word may be what a row is called: it is no word, name or value here."""
    mark = token.mark
    if token.means("unit"):
        return True
    if mark.is_unknown and not mark.is_skippable:
        return True

    return mark.literal is not None and not token.names


def _is_repeating(way: JoinPath) -> bool:
    """Tell whether a row at the beginning of the way may meet several at its end."""
    return any(not link.is_referencing for link in way)


def _lookup_in(tokens: Sequence[Token]) -> _Lookup | None:
    """Return the parts of a lookup; None where the words say something else."""
    place = _place_of_relation(tokens)
    if place is None or says(tokens, *_COMPUTING):
        return None

    before, behind = tokens[:place], tokens[place:]
    subject = _subject_of(before, behind)
    is_chinese = not behind[0].text.isascii()
    own, adverbs = _words_before(before, subject, is_chinese=is_chinese)
    if says([*adverbs, *behind], *_COMPARING):
        return None

    objects = [token for token in behind if token is not subject]
    if not says(tokens, *_TYING) and not table_words(objects):
        return None

    named = words_without(objects, "which", *_NEGATIONS)
    negations = len(tokens) - len(words_without(tokens, *_NEGATIONS))
    is_having = subject is not None and says(tokens, "having")
    return _Lookup(
        subject,
        named,
        own,
        adverbs,
        is_negated=negations % 2 == 1,
        is_excluding=says(before, "exclude"),
        is_having=is_having,
    )


def _place_of_relation(tokens: Sequence[Token]) -> int | None:
    """Return the place of the word that says how rows are tied, behind the subject's.

    Behind "exclude" it is another word: "exclude users who bought …", but "without orders".
    """
    own = place_of(tokens, "which", *_TYING)
    if own is not None:
        return own

    return place_of(tokens, "exclude")


def _rename_columns(conditions: Iterable[Json], name: str, new_name: str) -> None:
    """Let conditions on columns of a table use its new name."""
    for named in conditions:
        for compared in alternatives_in(named):
            column = compared["column"].removeprefix(f"{name}.")
            compared["column"] = f"{new_name}.{column}"


def _words_before(
    before: Sequence[Token], subject: Token | None, *, is_chinese: bool
) -> tuple[Sequence[Token], Sequence[Token]]:
    """Return the words before a lookup about its subject, and those that may be about either.

    In English all are about the subject. In Chinese those are that stand before the subject or
    before 的; what stands next to the verb may say when that is done.
    """
    end = 0 if is_chinese else len(before)
    for place, token in enumerate(before, 1):
        if token is subject or token.means("of"):
            end = max(end, place)

    own = [token for token in before[:end] if token is not subject]
    return own, before[end:]


def _subject_of(before: Sequence[Token], behind: Sequence[Token]) -> Token | None:
    """Return the word for the table whose rows are selected."""
    tables = table_words(before)
    if tables:
        return tables[0]

    return _subject_behind(behind)


def _subject_behind(tokens: Sequence[Token]) -> Token | None:
    """Return the table's word behind the last 的: 没有订单的会员."""
    subject = None
    for before, token in pairwise(tokens):
        is_of = before.means("of") and not before.text.isascii()
        if is_of and token.table is not None:
            subject = token

    return subject
