"""Reads a request in words as an intent: operations in the order of its clauses.

A follow-up is read over the operations of the earlier request, which its clauses change.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise

from common.cpu_clock import check
from common.text import Text
from common.values import Catalog, Table
from etl.binding.request_findings import RequestFindings
from etl.clauses.clause_cutting import Clause, clauses_of
from etl.clauses.clause_names import NamedColumn, NameResolver
from etl.clauses.clause_reading import RequestReading, text_of_words
from etl.clauses.clause_tokens import (
    Token,
    counted_tables,
    says,
    table_words,
    tokens_of,
    words_without,
)
from etl.clauses.dedup_clauses import DedupClauses, words_before_keys
from etl.clauses.earlier_request import draft_of_earlier
from etl.clauses.edit_clauses import EditClauses
from etl.clauses.filter_clauses import FilterClauses
from etl.clauses.join_clauses import JoinClauses
from etl.clauses.lookup_clauses import LookupClauses
from etl.clauses.ranking_clauses import RankingClauses, top_parts
from etl.clauses.request_draft import RequestDraft
from etl.clauses.sink_clauses import SinkClauses
from etl.schemas.requirement import (
    IntentOperation,
    IntentSource,
    IntentTarget,
    UserIntent,
)
from rules.schema.lexicon import Lexicon

_ADDING = ("also", "split")
_EDITING = ("instead", "instead_of", "replacing", "also", "split", "restriction")
_WITHOUT_BASE = ("sink", "spine", "impossible", "matched", "newest")
_MOST_SUMMARY_CHARS = 2_000


def read_sentence(
    question: str,
    catalog: Catalog,
    lexicon: Lexicon,
    findings: RequestFindings,
    earlier: UserIntent | None = None,
) -> UserIntent | None:
    """Return the intent of a request in words; None while anything is open or not possible.

    Args:
        catalog: as the caller sees it; `lexicon` is its own.
        findings: has the answers that were given; questions and refusals are added to it.
        earlier: the conversation's last request, which a follow-up changes.
    """
    if earlier is not None:
        text, tokens = tokens_of(question, lexicon, catalog, is_follow_up=True)
        if is_change(tokens):
            return _SentenceReader(text, tokens, catalog, lexicon, findings, earlier).read(question)

    text, tokens = tokens_of(question, lexicon, catalog)
    return _SentenceReader(text, tokens, catalog, lexicon, findings, None).read(question)


def is_change(tokens: Sequence[Token]) -> bool:
    """Tell whether words change an earlier request, rather than say all of a new one."""
    if not tokens:
        return False
    if says(tokens, *_EDITING) or says(tokens[:1], "then"):
        return True

    clauses = clauses_of(tokens)
    return not any(_names_its_tables(clause) for clause in clauses)


def _names_its_tables(clause: Clause) -> bool:
    """Tell whether a clause names the tables that it works on: a join both of them.

    A clause of a follow-up needs none, because it works on those of the earlier request.
    """
    tables = table_words(clause.tokens)
    if clause.kind == "join":
        return len(tables) > 1

    has_source = clause.kind in ("source", "dedup", "aggregate", "top", "running", "previous")
    return has_source and bool(tables)


class _SentenceReader:
    def __init__(
        self,
        text: str,
        tokens: Sequence[Token],
        catalog: Catalog,
        lexicon: Lexicon,
        findings: RequestFindings,
        earlier: UserIntent | None,
    ) -> None:
        self._findings = findings
        self._earlier = earlier
        self._names = NameResolver(catalog, lexicon, findings)
        draft = RequestDraft()
        if earlier is not None:
            draft = draft_of_earlier(earlier, catalog, self._names)

        is_follow_up = earlier is not None
        reading = RequestReading(
            catalog, lexicon, findings, self._names, draft, {}, is_follow_up=is_follow_up
        )
        self._reading = reading
        self._draft = draft
        self._before = deepcopy(draft.contents) if is_follow_up else None
        self._is_added = says(tokens, *_ADDING) or says(tokens[:1], "then")
        self._clauses = clauses_of(tokens, is_follow_up=is_follow_up)
        self._is_built = is_follow_up  # whether any clause says what to do
        self._joins = JoinClauses(reading)
        self._filters = FilterClauses(reading, self._joins)
        self._dedups = DedupClauses(reading)
        self._rankings = RankingClauses(reading)
        self._lookups = LookupClauses(reading)
        self._edits = EditClauses(reading)
        self._sinks = SinkClauses(reading, text)
        self._readers: Mapping[str, Callable[[Clause], None]] = {
            "join": self._joins.take,
            "matched": lambda _: self._joins.take_matched(),
            "filter": self._filters.take,
            "exclude": self._filters.take,
            "lookup": self._filters.take,
            "aggregate": self._take_figures,
            "dedup": self._dedups.take,
            "newest": self._dedups.take_newest,
            "running": self._rankings.take_window,
            "previous": self._rankings.take_window,
            "top": self._rankings.take_top,
            "spine": self._take_spine,
            "sink": self._sinks.take,
            "instead": self._edits.take_instead,
            "impossible": self._take_impossible,
        }

    def read(self, question: str) -> UserIntent | None:
        """Return the intent of all clauses."""
        if self._earlier is None:
            self._name_sources()
        if self._findings.ambiguities:
            return None  # all else depends on the tables

        for clause in self._clauses:
            check()
            self._note_date()
            self._lookups.note_owned(clause.tokens)
            self._take_clause(clause)

        self._sinks.decide()
        self._check_whole()
        if self._names.sources:
            self._lookups.leave_out()
            self._lookups.look_up_owned()
            self._lookups.look_up_selecting()
            self._joins.join_others()
            self._lookups.keep_apart()

        if self._findings.is_clear:
            return self._intent(question)

        return None

    # --------------------------------------------------------------------------
    # tables

    def _name_sources(self) -> None:
        """Find the tables that the request is about; the first one is the base."""
        for clause in self._clauses:
            if clause.kind != "sink":
                self._add_tables(_tables_behind_from(clause.tokens))

        groups: list[tuple[str, ...]] = [("source", "join", "dedup")]
        if not self._names.sources:
            groups += [("filter", "exclude"), ("top",)]
        self._name_counted()

        for kinds in groups:
            for clause in self._clauses:
                if clause.kind in kinds:
                    self._add_tables(self._base_words(clause))

            if self._names.sources:
                return

        for before, clause in pairwise(self._clauses):
            if self._lookups.is_lookup(clause.tokens):
                self._add_tables(before.tokens[-1:])

    def _name_counted(self) -> None:
        """Take tables whose rows are counted before those of conditions: "number of orders".

        Columns of other tables may say which rows these are.
        """
        kinds = {clause.kind for clause in self._clauses}
        if kinds.isdisjoint(("filter", "exclude")):
            return
        if not kinds.isdisjoint(("source", "join", "dedup")):
            return

        for clause in self._clauses:
            if clause.kind == "aggregate":
                self._add_tables(counted_tables(clause.tokens))

    def _note_selecting(self, tokens: Sequence[Token]) -> None:
        """Note the tables that only say of what a value is: "shipments tagged cold"."""
        for token, after in pairwise(tokens):
            is_behind_base = token.table in self._names.sources[1:]
            tables_of_value = {link.table for link in after.links("value")}
            if is_behind_base and token.table in tables_of_value:
                selecting = after.mark.links[0].table
                self._reading.selecting.add(selecting)

    def _base_words(self, clause: Clause) -> Sequence[Token]:
        """Return the words of a clause that may name the base."""
        subject = self._lookups.subject_of(clause.tokens)
        if subject is not None:
            return [subject]
        if clause.kind == "top":
            return top_parts(clause.tokens).things
        if clause.kind == "dedup":
            return words_before_keys(clause.tokens)

        return clause.tokens

    def _add_tables(self, tokens: Sequence[Token]) -> None:
        for table in self._reading.tables_of(tokens):
            self._names.add_source(table.key)

    def _note_date(self) -> None:
        """Set the date column of the period, with which days without a column are compared."""
        period = self._draft.period
        if period is None:
            return

        column = period.get("column") or self._findings.decided("date_column", "date")
        if column is not None:
            self._names.use_date(column)

    # --------------------------------------------------------------------------
    # clauses

    def _take_clause(self, clause: Clause) -> None:
        self._name_unknown_tables(clause)
        if clause.kind != "source":
            self._is_built = True
        if self._earlier is not None and self._edits.take_dropped(clause):
            return
        if clause.kind not in _WITHOUT_BASE and self._lookups.take(clause.tokens):
            self._is_built = True
            return

        self._readers.get(clause.kind, self._take_source)(clause)

    def _take_source(self, clause: Clause) -> None:
        """Take the conditions that stand with the tables: "paid orders of the last 30 days"."""
        is_compared = says(clause.tokens, "cmp", "between", "null", "notnull", "like")
        if is_compared or any(token.is_value_or_date for token in clause.tokens):
            self._is_built = True
            self._note_selecting(clause.tokens)
            self._filters.take(clause)
        else:
            self._reading.refuse_unread(words_without(clause.tokens, "from"))

    def _name_unknown_tables(self, clause: Clause) -> None:
        """Refuse what is called a table and is none: 工资表, where no table is called so."""
        if clause.kind == "sink":
            return

        for token, after in pairwise(clause.tokens):
            is_called_table = after.means("table") and not after.is_apart
            if is_called_table and token.table is None:
                self._reading.refuse_word(f"{token.text}{after.text}")

    def _take_figures(self, clause: Clause) -> None:
        if self._earlier is not None:
            self._edits.take_figures(clause, is_added=self._is_added)
            return

        self._reading.add_figures(self._reading.figures(clause.tokens))

    def _take_spine(self, clause: Clause) -> None:
        aggregate = self._draft.aggregate
        if aggregate is None or self._draft.period is None:
            self._reading.refuse_word(text_of_words(clause.tokens))
            return

        for token in words_without(clause.tokens, "fill", "empty", "bucket"):
            if not self._names.may_be_date(token):  # the days without data
                self._reading.refuse_unread([token])

        aggregate["spine"] = True
        for measure in aggregate["measures"]:
            measure["empty"] = "zero"

    def _take_impossible(self, clause: Clause) -> None:
        words = text_of_words(clause.tokens)
        text = Text(
            f"“{words}”不是对数据的转换，这里只生成可检查的数据表。",
            f"“{words}” is no transformation of data; tables are built here, nothing else.",
        )
        self._findings.refuse("not_a_transformation", text)

    # --------------------------------------------------------------------------
    # the whole

    def _check_whole(self) -> None:
        """Refuse a request without a table or without anything to do."""
        if not self._findings.is_clear:
            return

        aggregate = self._draft.aggregate
        if not self._names.sources:
            text = Text("没有认出任何数据表。", "No table was recognised in the request.")
            self._findings.refuse("unknown_name", text)
        elif self._before == self._draft.contents:
            text = Text(
                "这句话没有改变之前的请求：请说明要增加、替换或去掉什么。",
                "This changes nothing of the request: say what to add, replace or take away.",
            )
            self._findings.refuse("not_a_transformation", text)
        elif not self._is_built:
            text = Text(
                "请说明要怎样加工这些数据，例如按什么汇总、写入哪张表。",
                "Say what to make of the data: what to group by, which table to write.",
            )
            self._findings.refuse("not_a_transformation", text)
        elif aggregate is not None and not aggregate["measures"]:
            self._ask_measure()

    def _ask_measure(self) -> None:
        """Ask for the figure of a request that only says what to group by."""
        columns: list[NamedColumn] = []
        for key in self._names.sources:
            columns += self._names.measures_of(self._names.table_by_key(key))

        if not columns:
            text = Text(
                "没有认出要计算的指标，请说明要汇总哪个字段。",
                "No figure was recognised: say which column to sum or count.",
            )
            self._findings.refuse("unknown_name", text)
            return

        words = self._findings.shown(Text("汇总", "the figure"))
        measure = self._reading.asked_sum(words, columns)
        if measure is not None:
            self._draft.measures.append(measure)

    # --------------------------------------------------------------------------
    # the intent

    def _intent(self, question: str) -> UserIntent:
        operations = []
        for order, (action, parameters) in enumerate(self._draft.operations, 1):
            operation = IntentOperation(order=order, action=action, parameters=parameters)
            operations.append(operation)

        target = IntentTarget(table_name=self._draft.target)
        if self._earlier is None:
            return UserIntent(
                summary=question,
                data_sources=self._sources(),
                data_target=target,
                operations=operations,
            )

        target = self._earlier.data_target.model_copy(update={"table_name": self._draft.target})
        summary = f"{self._earlier.summary}; {question}"[-_MOST_SUMMARY_CHARS:]
        changes = {
            "summary": summary,
            "data_sources": self._sources(),
            "data_target": target,
            "operations": operations,
        }
        return self._earlier.model_copy(update=changes)

    def _sources(self) -> list[IntentSource]:
        """Return the tables of the earlier request, then those of this one."""
        sources = list(self._earlier.data_sources) if self._earlier is not None else []
        listed = set()
        for source in sources:
            listed.add(source.alias or source.table_name)

        named: dict[str, Table] = {}
        for key in self._names.sources:
            table = self._names.table_by_key(key)
            named[self._names.name_of(table)] = table

        for name, table in (*named.items(), *self._reading.lookups.items()):
            if name not in listed:
                sources.append(_source(name, table))

        return sources


def _source(name: str, table: Table) -> IntentSource:
    alias = None if name == table.name else name
    return IntentSource(table_name=table.name, schema_name=table.schema, alias=alias)


def _tables_behind_from(tokens: Sequence[Token]) -> list[Token]:
    """Return the words of tables that stand behind "from"."""
    tables: list[Token] = []
    for before, token in pairwise(tokens):
        if before.means("from") and token.table is not None:
            tables.append(token)

    return tables
