"""Reads a request in words as an intent: operations in the order of its clauses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rapidfuzz import process

from common.cpu_clock import check
from common.meanings import TableKey
from common.text import Text
from common.values import Catalog, Table
from etl.binding.request_findings import RequestFindings
from etl.clauses.clause_conditions import ConditionReader
from etl.clauses.clause_cutting import Clause, clauses_of
from etl.clauses.clause_figures import FigureReader, FigureReading
from etl.clauses.clause_names import NamedColumn, Names
from etl.clauses.clause_tokens import Token, says, tokens_of
from etl.meaning.decisions import JoinedRows, TargetRows
from etl.schemas.requirement import (
    IntentOperation,
    IntentSource,
    IntentTarget,
    UserIntent,
)
from knowledge.index import CatalogIndex, IndexPart
from rules.schema.lexicon import Lexicon

Json = dict[str, Any]

# Kinds of words that change what is meant, so that none of them may be passed over.
_SAYING = (
    *("bucket", "sum", "avg", "max", "min", "median", "count", "distinct", "super", "top"),
    *("not", "cmp", "null", "notnull", "like", "between", "range", "share", "growth", "rank"),
    *("running", "previous", "fill", "exclude", "dedup", "aggregate", "unsupported", "trend"),
)
_DIRECTIONS = {"+": "desc", "-": "asc"}
_MOST_SUGGESTIONS = 3
_LIKE = 75


def read_sentence(
    question: str, catalog: Catalog, lexicon: Lexicon, findings: RequestFindings
) -> UserIntent | None:
    """Return the intent of a request in words; None while anything is open or not possible.

    Args:
        catalog: as the caller sees it; `lexicon` is its own.
        findings: has the answers that were given; questions and refusals are added to it.
    """
    return _SentenceReader(question, catalog, lexicon, findings).read()


class _SentenceReader:
    def __init__(
        self, question: str, catalog: Catalog, lexicon: Lexicon, findings: RequestFindings
    ) -> None:
        self._question = question
        self._catalog = catalog
        self._lexicon = lexicon
        self._findings = findings
        self._text, tokens = tokens_of(question, lexicon, _IDENTIFIERS.of(catalog))
        self._clauses = clauses_of(tokens)
        self._names = Names(catalog, lexicon, findings)
        self._operations: list[tuple[str, Json]] = []
        self._aggregate: Json | None = None
        self._target: str | None = None
        self._is_built = False  # whether any clause says what to do
        self._readers: Mapping[str, Callable[[Clause], None]] = {
            "join": self._take_join,
            "matched": self._take_matched,
            "filter": self._take_filter,
            "exclude": self._take_filter,
            "aggregate": self._take_aggregate,
            "dedup": self._take_dedup,
            "newest": self._take_newest,
            "running": self._take_window,
            "previous": self._take_window,
            "top": self._take_top,
            "spine": self._take_spine,
            "sink": self._take_sink,
            "impossible": self._take_impossible,
        }

    def read(self) -> UserIntent | None:
        """Return the intent of all clauses."""
        self._name_sources()
        for clause in self._clauses:
            check()
            self._take(clause)
        self._check_whole()
        self._join_others()
        return self._intent() if self._findings.is_clear else None

    # --------------------------------------------------------------------------
    # tables

    def _name_sources(self) -> None:
        """Find the tables that the request is about; the first one is the base."""
        for kinds in (("source", "join", "dedup"), ("filter", "exclude"), ("top",)):
            for clause in self._clauses:
                if clause.kind in kinds:
                    self._add_tables(clause)
            if self._names.sources:
                return

    def _add_tables(self, clause: Clause) -> None:
        for token in clause.tokens:
            if token.table is None:
                continue
            table = self._names.table(token, len(self._operations) + 1)
            if table is not None:
                self._names.add(table.key)

    def _join_others(self) -> None:
        """Join the tables that only a column of the request named, before all else."""
        joined = {self._base_name()}
        for action, parameters in self._operations:
            if action == "join":
                joined.add(parameters["right"])
        missing = []
        for key in self._names.sources:
            table = self._names.of(key)
            if self._names.name_of(table) not in joined:
                missing.append(table)
        for table in reversed(missing):
            name = self._names.name_of(table)
            left = self._left_of(table)
            self._operations.insert(0, ("join", {"left": left, "right": name, "how": "left"}))
            text = Text(
                f"为取得 {name} 的字段，左连接了 {name}。",
                f"{name} is joined (left) for its columns.",
            )
            self._findings.assume(f"joined_{name}", text, 1, decides=JoinedRows(without=name))

    def _base_name(self) -> str:
        if not self._names.sources:
            return ""
        return self._names.name_of(self._names.of(self._names.sources[0]))

    def _left_of(self, right: Table) -> str:
        """Return the table of the request that a foreign key ties to this one; else the base."""
        tied = []
        for key in self._names.sources:
            left = self._names.of(key)
            if left.key != right.key and _are_tied(left, right):
                tied.append(left)
        if len(tied) == 1:
            return self._names.name_of(tied[0])
        return self._base_name()

    # --------------------------------------------------------------------------
    # clauses

    def _name_unknown_tables(self, clause: Clause) -> None:
        """Name what is called a table and is none: 工资表, where no table is called so."""
        if clause.kind == "sink":
            return
        for token, after in pairwise(clause.tokens):
            is_called_table = after.means("table") and not after.is_apart
            if is_called_table and token.table is None:
                self._uncovered(f"{token.text}{after.text}")

    def _take(self, clause: Clause) -> None:
        self._name_unknown_tables(clause)
        if clause.kind != "source":
            self._is_built = True
        take = self._readers.get(clause.kind)
        if take is None:
            self._cover(clause.tokens)
        else:
            take(clause)

    @property
    def _order(self) -> int:
        """Return the order of the operation that is read."""
        return len(self._operations) + 1

    def _cover(self, tokens: Sequence[Token]) -> None:
        """Name the words that say something and that nothing has read."""
        for token in tokens:
            is_unknown = token.mark.is_unknown and not token.mark.is_skippable
            is_dated = token.mark.date is not None
            is_named = token.names and token.table is None
            is_quoted = token.mark.literal is not None and token.table is None
            is_left = is_unknown or is_dated or is_named or is_quoted
            if is_left or token.means(*_SAYING):
                self._uncovered(token.text)

    def _uncovered(self, word: str) -> None:
        suggestions = self._near(word)
        text = Text(
            f"“{word}”在这里没有对应的表、字段或操作，没有被采用。",
            f"“{word}” is no table, column or step that is known here: nothing was done with it.",
        )
        self._findings.refuse("unknown_name", text, suggestions)

    def _near(self, word: str) -> list[str]:
        """Return names of tables and columns that are spelled like the word."""
        names = {table.name for table in self._catalog.tables}
        for key in self._names.sources:
            names.update(column.name for column in self._names.of(key).columns)
        found = process.extract(word.lower(), sorted(names), limit=_MOST_SUGGESTIONS)
        return [name for name, score, _ in found if score >= _LIKE]

    # --------------------------------------------------------------------------
    # joins

    def _take_join(self, clause: Clause) -> None:
        keys = self._join_keys(clause)
        how = "inner" if says(clause.tokens, "inner") else "left"
        self._cover([token for token in clause.tokens if token not in keys])
        unused = set(keys)
        for table in self._tables_of(clause):
            if table.key == self._names.sources[0]:
                continue
            parameters: Json = {
                "left": self._left_of(table),
                "right": self._names.name_of(table),
                "how": how,
            }
            pairs = {token: self._pair(named, table) for token, named in keys.items()}
            found = {token: pair for token, pair in pairs.items() if pair is not None}
            if found:
                parameters["on"] = list(found.values())
                parameters["left"] = parameters["on"][0][0].partition(".")[0]
            unused -= found.keys()
            self._operations.append(("join", parameters))
        self._cover([token for token in keys if token in unused])

    def _tables_of(self, clause: Clause) -> list[Table]:
        """Return the tables that the clause names, each once."""
        tables: dict[TableKey, Table] = {}
        for token in clause.tokens:
            table = self._names.table(token, self._order) if token.table else None
            if table is not None:
                tables.setdefault(table.key, table)
        return list(tables.values())

    def _join_keys(self, clause: Clause) -> dict[Token, NamedColumn]:
        """Return the columns behind `by` or `on`, by which the tables are joined."""
        keys: dict[Token, NamedColumn] = {}
        is_key = False
        for token in clause.tokens:
            if token.means("by", "on"):
                is_key = True
            elif token.means("join", "left", "inner"):
                is_key = False
            elif is_key and token.links("column") and token.table is None:
                named = self._names.column(token, self._order, among=self._names.sources)
                if named is not None:
                    keys[token] = named
        return keys

    def _pair(self, named: NamedColumn, right: Table) -> list[str] | None:
        for key in self._names.sources:
            other = self._names.of(key)
            if named.table.key == right.key:
                left, left_column = other, _partner(right, named.column.name, other)
                right_column: str | None = named.column.name
            else:
                left, left_column = named.table, named.column.name
                right_column = _partner(named.table, named.column.name, right)
            if left.key == right.key or left_column is None or right_column is None:
                continue
            return [
                self._names.reference(left, left_column),
                self._names.reference(right, right_column),
            ]
        return None

    def _take_matched(self, clause: Clause) -> None:  # noqa: ARG002 - its kind says all
        """Keep only rows with a match: the joins so far become inner ones."""
        for action, parameters in self._operations:
            if action == "join":
                parameters["how"] = "inner"

    # --------------------------------------------------------------------------
    # filters

    def _take_filter(self, clause: Clause) -> None:
        if says(clause.tokens, "having"):
            self._take_having(clause)
            return
        excludes = clause.kind == "exclude"
        measures = self._aggregate["measures"] if self._aggregate else ()
        reader = ConditionReader(clause.tokens, self._names, self._findings, self._order, measures)
        reading = reader.read(excludes=excludes)
        for word in reading.uncovered:
            self._uncovered(word)
        for condition in reading.conditions:
            self._add_tables_of(condition)
        if reading.conditions:
            conditions = [self._of_result(one) for one in reading.conditions]
            self._operations.append(("filter", {"conditions": conditions}))
        elif not reading.uncovered and not self._findings.ambiguities:
            self._uncovered(_said(clause.tokens))

    def _take_having(self, clause: Clause) -> None:
        """Join the last table of "only orders that have users" by an inner join."""
        for table in self._tables_of(clause)[1:]:
            self._names.add(table.key)
            left = self._left_of(table)
            name = self._names.name_of(table)
            self._operations.append(("join", {"left": left, "right": name, "how": "inner"}))

    def _add_tables_of(self, condition: Json) -> None:
        for one in condition.get("any", [condition]):
            name, dot, _ = one["column"].partition(".")
            if not dot:
                continue  # a figure of the result
            for table in self._catalog.tables:
                if self._names.name_of(table) == name:
                    self._names.add(table.key)

    def _of_result(self, condition: Json) -> Json:
        """Name a figure of the aggregate before by its name in the result."""
        if self._aggregate is None:
            return condition
        for measure in self._aggregate["measures"]:
            if measure.get("column") == condition.get("column"):
                return {**condition, "column": measure["as"]}
        for key in self._aggregate["group_by"]:
            if key.get("column") == condition.get("column"):
                return {**condition, "column": key["as"]}
        return condition

    # --------------------------------------------------------------------------
    # figures

    def _figures(self, tokens: Sequence[Token]) -> FigureReading:
        reader = FigureReader(tokens, self._names, self._lexicon, self._findings, self._order)
        reading = reader.read()
        for word in reading.uncovered:
            self._uncovered(word)
        return reading

    def _take_aggregate(self, clause: Clause) -> None:
        reading = self._figures(clause.tokens)
        self._add_figures(reading)

    def _add_figures(self, reading: FigureReading) -> Json:
        """Add keys and measures to the aggregate, which is made when there is none yet."""
        if self._aggregate is None:
            self._aggregate = {"group_by": [], "measures": []}
            self._operations.append(("aggregate", self._aggregate))
        for key in reading.keys:
            if key not in self._aggregate["group_by"]:
                self._aggregate["group_by"].append(key)
        names = {measure["as"] for measure in self._aggregate["measures"]}
        for measure in reading.measures:
            if measure["as"] not in names:
                self._aggregate["measures"].append(measure)
        return self._aggregate

    def _take_spine(self, clause: Clause) -> None:
        if self._aggregate is None or not self._period_key():
            self._uncovered(_said(clause.tokens))
            return
        self._cover(
            [token for token in clause.tokens if not token.means("fill", "empty", "bucket")]
        )
        self._aggregate["spine"] = True
        for measure in self._aggregate["measures"]:
            measure["empty"] = "zero"

    def _period_key(self) -> str | None:
        """Return the name of the period in the result, if the aggregate has one."""
        if self._aggregate is None:
            return None
        for key in self._aggregate["group_by"]:
            if "unit" in key:
                return str(key["as"])
        return None

    # --------------------------------------------------------------------------
    # windows

    def _take_window(self, clause: Clause) -> None:
        reading = self._figures(clause.tokens)
        aggregate = self._add_figures(reading)
        names = [measure["as"] for measure in reading.measures]
        if not names:
            names = [measure["as"] for measure in aggregate["measures"]]
        sorting = self._period_key() or _first_key(aggregate)
        if sorting is None or not names:
            if not self._findings.ambiguities:
                self._uncovered(_said(clause.tokens))
            return
        others = [key["as"] for key in aggregate["group_by"] if key["as"] != sorting]
        is_running = clause.kind == "running"
        for name in names:
            window: Json = {
                "function": "sum" if is_running else "lag",
                "column": name,
                "partition_by": others,
                "order_by": [{"column": sorting, "direction": "asc"}],
                "as": f"{name}_{'running' if is_running else 'previous'}",
            }
            if not is_running:
                window["offset"] = 1
            self._operations.append(("window", window))

    def _take_top(self, clause: Clause) -> None:
        parts = _top_parts(clause.tokens)
        measure = self._ranked_measure(parts)
        if parts.count is None or measure is None:
            if not self._findings.ambiguities:
                self._uncovered(_said(clause.tokens))
            return
        thing = self._thing(parts.things)
        groups = []
        for token in parts.groups:
            named = self._names.column(token, self._order) if token.names else None
            if named is not None:
                groups.append(named)
        if self._has_measure(measure) or self._is_summed(thing, measure):
            self._rank_groups(parts, thing, groups, measure)
        else:
            self._rank_rows(parts, groups, measure)

    def _ranked_measure(self, parts: "_TopParts") -> Json | None:
        """Return the figure that ranks: the one that is said, else the aggregate's only one."""
        if parts.figure:
            measures = self._figures(parts.figure).measures
            return measures[0] if measures else None
        if self._aggregate is None or len(self._aggregate["measures"]) != 1:
            return None
        only: Json = self._aggregate["measures"][0]
        return only

    def _thing(self, tokens: Sequence[Token]) -> Table | None:
        for token in tokens:
            if token.table is not None:
                table = self._names.table(token, self._order)
                if table is not None:
                    self._names.add(table.key)
                    return table
        return None

    def _has_measure(self, measure: Json) -> bool:
        if self._aggregate is None:
            return False
        columns = {(one["function"], one.get("column")) for one in self._aggregate["measures"]}
        return (measure["function"], measure.get("column")) in columns

    def _is_summed(self, thing: Table | None, measure: Json) -> bool:
        """Tell whether the figure belongs to other rows than the ranked things."""
        if thing is None or "column" not in measure:
            return thing is not None
        return str(measure["column"].partition(".")[0]) != self._names.name_of(thing)

    def _rank_groups(
        self,
        parts: "_TopParts",
        thing: Table | None,
        groups: Sequence[NamedColumn],
        measure: Json,
    ) -> None:
        """Rank the groups of an aggregate by a figure of theirs."""
        if self._aggregate is None:
            keys = [self._key(named) for named in groups]
            if thing is not None:
                shown = self._lexicon.schema.facts[thing.key].display[:1]
                for column in dict.fromkeys((*thing.primary_key, *shown)):
                    name = f"{self._names.name_of(thing)}_{column}"
                    keys.append({"column": self._names.reference(thing, column), "as": name})
            self._add_figures(FigureReading(keys=keys, measures=[measure]))
        assert self._aggregate is not None
        partition = []
        for named in groups:
            called = self._name_in_result(named, self._aggregate)
            if called is None:
                self._uncovered(named.column.comment or named.column.name)
                return
            partition.append(called)
        self._rank(parts, partition, measure["as"])

    def _name_in_result(self, named: NamedColumn, aggregate: Json) -> str | None:
        """Return what the aggregate calls the column; one of a row that is a key is added to it."""
        column = self._names.reference(named.table, named.column.name)
        columns = {key.get("column"): str(key["as"]) for key in aggregate["group_by"]}
        if column in columns:
            return columns[column]
        own = [self._names.reference(named.table, name) for name in named.table.primary_key]
        if not own or not all(name in columns for name in own):
            return None
        key = self._key(named)
        if key["as"] in columns.values():
            key["as"] = f"{self._names.name_of(named.table)}_{key['as']}"
        aggregate["group_by"].append(key)
        return str(key["as"])

    def _key(self, named: NamedColumn) -> Json:
        self._names.add(named.table.key)
        column = self._names.reference(named.table, named.column.name)
        return {"column": column, "as": named.column.name}

    def _rank_rows(self, parts: "_TopParts", groups: Sequence[NamedColumn], measure: Json) -> None:
        """Rank the base's rows by a column of theirs."""
        for named in groups:
            self._names.add(named.table.key)
        partition = [self._names.reference(one.table, one.column.name) for one in groups]
        self._rank(parts, partition, measure["column"])

    def _rank(self, parts: "_TopParts", partition: Sequence[str], column: str) -> None:
        window = {
            "function": "rank",
            "partition_by": list(partition),
            "order_by": [{"column": column, "direction": parts.direction}],
            "as": "rank",
        }
        self._operations.append(("window", window))
        condition = {"column": "rank", "operator": "<=", "value": parts.count}
        self._operations.append(("filter", {"conditions": [condition]}))
        text = Text(
            "并列的行名次相同，都保留。", "Rows that tie have the same rank, and all of them stay."
        )
        decides = TargetRows(ties=True)
        self._findings.assume("ties_stay", text, len(self._operations), decides=decides)

    # --------------------------------------------------------------------------
    # deduplication

    def _take_dedup(self, clause: Clause) -> None:
        before, keyed, newest = _dedup_parts(clause.tokens)
        table = self._deduplicated(before)
        keys: list[str] = []
        for token in keyed:
            if not token.links("column"):
                self._cover([token])
                continue
            among = [table.key] if table is not None else None
            named = self._names.column(token, self._order, among=among)
            if named is not None:
                table = table or named.table
                keys.append(named.column.name)
        if table is None and self._names.sources:
            table = self._names.of(self._names.sources[0])
        if table is None or not keys:
            if not self._findings.ambiguities:
                self._uncovered(_said(clause.tokens))
            return
        sorting = self._newest(newest) if newest else []
        self._names.add(table.key)
        parameters = {"table": self._names.name_of(table), "keys": keys, "order_by": sorting}
        self._operations.append(("dedup", {**parameters, "keep": "first"}))

    def _deduplicated(self, tokens: Sequence[Token]) -> Table | None:
        """Return the table that stands before the keys of a dedup."""
        table = None
        for token in tokens:
            if token.table is not None:
                table = self._names.table(token, self._order)
            elif not token.means("dedup"):
                self._cover([token])
        return table

    def _take_newest(self, clause: Clause) -> None:
        """Say which row of the dedup before stays."""
        for action, parameters in reversed(self._operations):
            if action == "dedup":
                parameters["order_by"] = self._newest(clause.tokens)
                return

    def _newest(self, tokens: Sequence[Token]) -> list[Json]:
        """Return the order whose first row stays; nothing when a date has to be asked first."""
        word = next(token for token in tokens if token.means("super"))
        named = self._named_column(tokens) or self._only_date(word.text)
        if named is None:
            return []
        column = self._names.reference(named.table, named.column.name)
        return [{"column": column, "direction": _DIRECTIONS.get(word.arg[:1], "desc")}]

    def _named_column(self, tokens: Sequence[Token]) -> NamedColumn | None:
        for token in tokens:
            if token.links("column") and not token.means("super"):
                named = self._names.column(token, self._order)
                if named is not None:
                    return named
        return None

    def _only_date(self, said: str) -> NamedColumn | None:
        """Return the date of the base, else of any table; of several the user is asked."""
        dates = self._names.dates()
        own = [named for named in dates if named.table.key == self._names.sources[0]]
        if not dates:
            self._uncovered(said)
            return None
        return self._names.only("date_column", said, own or dates, self._order)

    # --------------------------------------------------------------------------
    # targets and what can't be done

    def _take_sink(self, clause: Clause) -> None:
        """Take the name behind the word as it is written."""
        named = list(clause.tokens)
        while named and named[0].means("sink", "table", "skipped", "noise"):
            if named[0].means("noise") and named[0].names:
                break
            named.pop(0)
        if not named:
            return
        first = named[0]
        if first.mark.literal is not None:
            self._target = first.mark.literal
            return
        written = self._text[first.start : named[-1].end].strip().strip("`")
        if written.isascii():
            written = written.removesuffix(" table").replace(" ", "_").lower()
        self._target = written

    def _take_impossible(self, clause: Clause) -> None:
        said = _said(clause.tokens)
        text = Text(
            f"“{said}”不是对数据的转换，这里只生成可检查的数据表。",
            f"“{said}” is no transformation of data; tables are built here, nothing else.",
        )
        self._findings.refuse("not_a_transformation", text)

    def _check_whole(self) -> None:
        """Refuse a request without a table or without anything to do."""
        if not self._findings.is_clear:
            return
        if not self._names.sources:
            text = Text("没有认出任何数据表。", "No table was recognised in the request.")
            self._findings.refuse("unknown_name", text)
        elif not self._is_built:
            text = Text(
                "请说明要怎样加工这些数据，例如按什么汇总、写入哪张表。",
                "Say what to make of the data: what to group by, which table to write.",
            )
            self._findings.refuse("not_a_transformation", text)
        elif self._aggregate is not None and not self._aggregate["measures"]:
            self._ask_measure(self._aggregate)

    def _ask_measure(self, aggregate: Json) -> None:
        """Ask for the figure of a request that only says what to group by."""
        columns = []
        for key in self._names.sources:
            table = self._names.of(key)
            for column in table.columns:
                if self._names.is_measure(table, column):
                    columns.append(NamedColumn(table, column))
        if not columns:
            text = Text(
                "没有认出要计算的指标，请说明要汇总哪个字段。",
                "No figure was recognised: say which column to sum or count.",
            )
            self._findings.refuse("unknown_name", text)
            return
        said = self._findings.shown(Text("汇总", "the figure"))
        named = self._names.only("measure", said, columns, self._order)
        if named is None:
            return
        reference = self._names.reference(named.table, named.column.name)
        name = f"{named.column.name}_sum"
        aggregate["measures"].append({"function": "sum", "column": reference, "as": name})

    def _intent(self) -> UserIntent:
        operations = []
        for order, (action, parameters) in enumerate(self._operations, 1):
            operations.append(
                IntentOperation(order=order, action=action, parameters=parameters)  # type: ignore[arg-type]
            )
        sources = []
        for key in self._names.sources:
            table = self._names.of(key)
            name = self._names.name_of(table)
            sources.append(
                IntentSource(
                    table_name=table.name,
                    schema_name=table.schema,
                    alias=None if name == table.name else name,
                )
            )
        return UserIntent(
            summary=self._question,
            data_sources=sources,
            data_target=IntentTarget(table_name=self._target),
            operations=operations,
        )


def _dedup_parts(
    tokens: Sequence[Token],
) -> tuple[Sequence[Token], Sequence[Token], Sequence[Token]]:
    """Return what stands before the keys of a dedup, the keys, and what says which row stays."""
    end = next((at for at, token in enumerate(tokens) if token.means("super")), None)
    newest: Sequence[Token] = ()
    if end is not None:
        first = max(end - 1, 0)  # the column of 创建时间最新
        newest, tokens = tokens[first:], tokens[:first]
    by = next((at for at, token in enumerate(tokens) if token.means("by")), len(tokens))
    keyed = [token for token in tokens[by + 1 :] if not token.means("dedup", "keep")]
    return tokens[:by], keyed, newest


@dataclass(frozen=True)
class _TopParts:
    """The parts of "top N X per D by M"."""

    count: int | None
    direction: str
    things: tuple[Token, ...]
    groups: tuple[Token, ...]
    figure: tuple[Token, ...]


def _identifiers(index: CatalogIndex) -> frozenset[str]:
    """Return the names of tables and columns that are written as several words."""
    names = {table.name for table in index.catalog.tables}
    for table in index.catalog.tables:
        names.update(column.name for column in table.columns)
    return frozenset(name.lower() for name in names if "_" in name)


_IDENTIFIERS = IndexPart(_identifiers, ignores_row_counts=True)


def _top_parts(tokens: Sequence[Token]) -> _TopParts:
    place = next(index for index, token in enumerate(tokens) if token.means("top"))
    number = tokens[place + 1].mark.number if place + 1 < len(tokens) else None
    count = int(number.value) if number is not None else None
    direction = "asc" if tokens[place].arg == "-" else "desc"
    before, behind = tokens[:place], tokens[place + 2 :]
    if tokens[place].text.isascii():
        return _english_top(count, direction, behind)
    named = [token for token in before if token.names]
    is_grouped = any(token.means("each") for token in before)
    most = 1 if is_grouped else 0
    groups, figure = named[:most], named[most:]
    return _TopParts(count, direction, tuple(behind), tuple(groups), tuple(figure))


def _english_top(count: int | None, direction: str, behind: Sequence[Token]) -> _TopParts:
    parts: dict[str, list[Token]] = {"things": [], "groups": [], "figure": []}
    place = "things"
    for token in behind:
        if token.means("each"):
            place = "groups"
        elif token.means("by"):
            place = "figure"
        else:
            parts[place].append(token)
    return _TopParts(
        count, direction, tuple(parts["things"]), tuple(parts["groups"]), tuple(parts["figure"])
    )


def _first_key(aggregate: Json) -> str | None:
    keys = aggregate["group_by"]
    return str(keys[0]["as"]) if keys else None


def _are_tied(one: Table, other: Table) -> bool:
    forward = any(key.target == other.key for key in one.foreign_keys)
    backward = any(key.target == one.key for key in other.foreign_keys)
    return forward or backward


def _partner(table: Table, column: str, other: Table) -> str | None:
    """Return the column of `other` that the column is joined with, if one is declared or named."""
    for key in table.foreign_keys:
        if key.target == other.key and column in key.columns:
            return key.target_columns[key.columns.index(column)]
    for key in other.foreign_keys:
        if key.target == table.key and column in key.target_columns:
            return key.columns[key.target_columns.index(column)]
    return column if other.column(column) is not None else None


def _said(tokens: Sequence[Token]) -> str:
    parts: list[str] = []
    for token in tokens:
        parts.append((" " if parts and token.is_apart else "") + token.text)
    return "".join(parts)
