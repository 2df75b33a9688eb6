"""How many broken models the tests of drafts notice, over intents that are drawn at random.

Models are broken in two ways: by the drafts' own operators on trees, and by edits of the text
(`benchmarks.edited_sql`), which know nothing of these. An edit counts when it changes a row of its
model, over rows that have nothing to do with those that the tests made up.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmarks.edited_sql import Edit, edits
from common.values import Table
from databases.source import database_sources
from etl.evidence.mutants import mutants_of
from etl.evidence.proof import ProofOptions, prove
from etl.evidence.stage import difference
from etl.meaning.bound import BoundIntent
from etl.planning.draft_model import Draft, DraftModel
from etl.planning.draft_test import DraftTest, TypedRows
from etl.planning.drafting import make_draft
from etl.rendering.layout import Layout
from etl.rendering.select_rendering import render_select
from etl.schemas.evidence import Survivor
from etl.scratch.scratch_access import ScratchDatabase
from etl.scratch.scratch_loading import create_table, insert_rows, typed_values
from etl.scratch.scratch_options import ScratchOptions
from etl.scratch.source_sampling import Samples, TableSample
from postgres.identifiers import quoted
from tests.support.drawn_intents import drawn_intents

_KINDS_SHOWN = 15
_DRAWN_FOR_ONE = 5  # neighbours are much alike
_MOST_EDITS = 150  # of one draft
_WORLDS = 6
_OF_THE_MODEL = ("etl_step", "etl_counted")  # queries with much the same columns
_CHECKED = "SET search_path = {}; SET statement_timeout = '10s'; SET TimeZone = 'UTC'"

_DAYS = [date(2024, 1, 28) + timedelta(days=day) for day in range(0, 75, 3)]
_MOMENTS = [
    datetime(2024, 2, 28, 23, 30, tzinfo=UTC) + timedelta(hours=hour)
    for hour in (0, 5, 6, 28, 29, 52, 53, 77, 270, 271, 800, 1700)
]
_AMOUNTS = [None, *(Decimal(cents) / 100 for cents in (-300, 0, 100, 100, 250, 600, 999, 12345))]
_VALUES: Mapping[str, Sequence[Any]] = {
    "status": (None, "paid", "paid", "void", "partial", "unpaid", "{{ lost }}", ""),
    "currency": (None, "EUR", "EUR", "USD", "GBP"),
    "product": (None, "pen", "pen", "ink", "Pen"),
    "city": (None, "Ulm", "Ulm", "Bonn", "ulm"),
    "is_vip": (None, True, False),
    "quantity": (None, 0, 1, 1, 2, 3, 4),
    "ordered_on": (None, *_DAYS),
    "day": (None, *_DAYS),
    "paid_at": (None, *_MOMENTS),
    "amount": _AMOUNTS,
    "price": _AMOUNTS,
    "rate": (None, Decimal("0.5"), Decimal("1.25"), Decimal("1.25"), Decimal(2)),
    "user_id": (None, *range(1, 14), 99),
    "order_id": (None, *range(1, 30), 99),
}
_ROWS = {"orders": (0, 6, 30), "items": (0, 6, 40), "users": (0, 3, 12), "rates": (0, 4, 30)}


@dataclass
class MutationFindings:
    """What became of the broken models.

    Attributes:
        survivors: the drafts' own mutants that nothing showed.
        missed: edits that change a row, and that no test noticed, by kind.
    """

    drafts: int = 0
    own_tried: int = 0
    own_caught: int = 0
    own_equivalent: int = 0
    survivors: list[Survivor] = field(default_factory=list)
    own_missed: Counter[str] = field(default_factory=Counter)
    edits: int = 0
    changing: int = 0
    caught: int = 0
    missed: Counter[str] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)

    def lines(self, *, shows: bool) -> Iterator[str]:
        """Yield the scores and what they lack by kind, and each case if it `shows` them."""
        missed = self.own_missed.total()
        changing = self.own_caught + missed
        others = self.own_tried - changing
        yield (
            f"{self.drafts} drafts; own mutants: {self.own_caught} of {changing} that change a row"
            f" caught ({_percent(self.own_caught, changing)}); {others} change none,"
            f" {self.own_equivalent} of them provably"
        )
        listed = self.own_missed.most_common(_KINDS_SHOWN)
        yield from (f"  {count:4} {name}" for name, count in listed)
        yield (
            f"edited text: {self.caught} of {self.changing} edits that change a row caught"
            f" ({_percent(self.caught, self.changing)}), of {self.edits} tried"
        )
        yield from (f"  {count:4} {name}" for name, count in self.missed.most_common(_KINDS_SHOWN))
        if shows:
            yield from (f"- {' '.join(one.split())}" for one in self.shown)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


def run(folder: Path, *, drafts: int, number: int) -> MutationFindings:
    """Measure over so many drafts.

    Args:
        number: the number of the draws; another one gives other intents.
    """
    found = MutationFindings()
    sources = database_sources("", "", folder)
    try:
        url = sources.scratch()
        for bound in _drawn(drafts, number):
            _measure(url, bound, found)
    finally:
        sources.hold.release()
    return found


def _drawn(count: int, number: int) -> list[BoundIntent]:
    intents: list[BoundIntent] = []

    @seed(number)
    @settings(
        max_examples=count * _DRAWN_FOR_ONE,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn_intents())
    def draw(bound: BoundIntent) -> None:
        intents.append(bound)

    draw()
    return intents[_DRAWN_FOR_ONE - 1 :: _DRAWN_FOR_ONE]


def _measure(url: str, bound: BoundIntent, found: MutationFindings) -> None:
    draft = make_draft(bound)
    scratch = ScratchDatabase(lambda: url, ScratchOptions(), dict)
    proof = asyncio.run(prove(draft, bound, scratch, _empty(bound), ProofOptions("mutation")))
    mutants = proof.report.mutants
    found.drafts += 1
    if mutants is not None:
        found.own_tried += mutants.tried
        found.own_caught += mutants.caught
        found.own_equivalent += mutants.equivalent
        found.survivors += mutants.survivors
    with psycopg.connect(url, autocommit=True) as connection:
        survivors = mutants.survivors if mutants is not None else []
        _Editing(connection, draft, bound, proof.tests, found).run(survivors)


def _empty(bound: BoundIntent) -> Samples:
    tables = {}
    for source in bound.sources:
        columns = tuple(column.name for column in source.table.columns)
        tables[source.table.key] = TableSample(source.table, columns, [], 0, True)
    return Samples(tables)


class _Editing:
    """The edits of one draft's models, and the schemas in which they are judged."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        draft: Draft,
        bound: BoundIntent,
        tests: Sequence[DraftTest],
        found: MutationFindings,
    ) -> None:
        self._connection = connection
        self._draft = draft
        self._bound = bound
        self._tests = [test for test in tests if test.case is not None]
        self._found = found
        self._layout = Layout(draft)
        self._schemas: list[str] = []
        self._worlds: list[str] = []
        self._cases: dict[str, list[tuple[str, str, list[str]]]] = {}

    def run(self, survivors: Sequence[Survivor]) -> None:
        try:
            self._build_worlds()
            self._build_cases()
            self._judge_survivors(survivors)
            for model, edit in self._some():
                self._judge(model, edit)
        finally:
            for schema in self._schemas:
                self._connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())

    def _schema(self) -> str:
        name = f"edited_{len(self._schemas)}"
        self._connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())
        self._connection.execute(f"CREATE SCHEMA {name}".encode())
        self._connection.execute(_CHECKED.format(name).encode())
        self._schemas.append(name)
        return name

    def _text(self, model: DraftModel) -> str:
        return render_select(model.select, self._layout.sql_name, jinja=False)

    def _build_worlds(self) -> None:
        for number in range(_WORLDS):
            schema = self._schema()
            for table in {
                source.table.key: source.table for source in self._bound.sources
            }.values():
                self._fill(table, random.Random(f"{number} {table.name}"))  # noqa: S311
            for model in self._draft.models:
                relation = quoted(model.relation)
                self._connection.execute(f"CREATE TABLE {relation} AS {self._text(model)}".encode())
            self._worlds.append(schema)

    def _fill(self, table: Table, chance: random.Random) -> None:
        known = {(source.schema, source.name) for source in self._layout.sources}
        if table.key not in known:
            return
        count = chance.choice(_ROWS[table.name][1:])
        rows = []
        for place in range(count):
            values = [place + 1 if column.name == "id" else None for column in table.columns]
            for at, one in enumerate(table.columns):
                if one.name != "id":
                    values[at] = chance.choice(_VALUES[one.name])
            rows.append(tuple(values))
        chance.shuffle(rows)
        columns = tuple((column.name, column.type) for column in table.columns)
        self._put(TypedRows(table.schema, table.name, columns, tuple(rows)))

    def _put(self, rows: TypedRows) -> None:
        name = rows.name
        if rows.schema:
            name = self._layout.source(rows.schema, rows.name).view
        else:
            name = self._draft.model(rows.name).relation
        self._connection.execute(create_table(quoted(name), rows.columns).encode())
        inserted = insert_rows(quoted(name), rows)
        if inserted is not None:
            self._connection.execute(inserted.encode())

    def _build_cases(self) -> None:
        for test in self._tests:
            case = test.case
            if case is None or test.kind != "unit":
                continue
            schema = self._schema()
            for rows in case.inputs or ():
                self._put(rows)
            wanted = typed_values(case.expected)
            self._connection.execute(f'CREATE TABLE "wanted rows" AS {wanted}'.encode())
            columns = [name for name, _ in case.expected.columns]
            self._cases.setdefault(test.node, []).append((schema, 'TABLE "wanted rows"', columns))

    def _some(self) -> list[tuple[DraftModel, Edit]]:
        columns: dict[str, Sequence[str]] = {}
        for source in self._layout.sources:
            columns[source.name] = columns[source.view] = source.columns
        for model in self._draft.models:
            columns[model.relation] = [column.name for column in model.node.columns]
        pairs = []
        for model in self._draft.models:
            own = columns | dict.fromkeys(_OF_THE_MODEL, columns[model.relation])
            pairs += [(model, edit) for edit in edits(self._text(model), own)]
        chance = random.Random(len(pairs))  # noqa: S311
        return chance.sample(pairs, min(len(pairs), _MOST_EDITS))

    def _judge_survivors(self, survivors: Sequence[Survivor]) -> None:
        """Count the drafts' own mutants that nothing showed, and that change a row all the same."""
        named = {(survivor.node, survivor.operator, survivor.detail) for survivor in survivors}
        for mutant in mutants_of(self._draft):
            if (mutant.node, mutant.operator, mutant.detail) not in named:
                continue
            model = self._draft.model(mutant.node)
            columns = [column.name for column in model.node.columns]
            text = render_select(mutant.select, self._layout.sql_name, jinja=False)
            built = f"TABLE {quoted(model.relation)}"
            if any(self._differs(text, world, built, columns) for world in self._worlds):
                named.discard((mutant.node, mutant.operator, mutant.detail))
                self._found.own_missed[mutant.operator] += 1
                place = f"draft {self._found.drafts}, own {mutant.operator} {mutant.node}"
                self._found.shown.append(f"{place}: {mutant.detail}")

    def _judge(self, model: DraftModel, edit: Edit) -> None:
        self._found.edits += 1
        columns = [column.name for column in model.node.columns]
        built = f"TABLE {quoted(model.relation)}"
        cases = self._cases.get(model.name, [])
        is_caught = any(self._differs(edit.sql, *case) for case in cases)
        changes = is_caught or any(
            self._differs(edit.sql, world, built, columns) for world in self._worlds
        )
        if not changes:
            return
        self._found.changing += 1
        if is_caught:
            self._found.caught += 1
            return
        kind = f"{model.node.layer} {edit.kind}"
        self._found.missed[kind] += 1
        place = f"draft {self._found.drafts}, {kind} {model.name}"
        self._found.shown.append(f"{place}: {edit.detail}")

    def _differs(self, edited: str, schema: str, wanted: str, columns: list[str]) -> bool:
        """Tell whether rows differ, or can't be computed; what is no SQL differs nowhere."""
        self._connection.execute(_CHECKED.format(schema).encode())
        try:
            query = difference(edited, wanted, columns)
            ((count,),) = self._connection.execute(query.encode()).fetchall()
        except psycopg.Error as error:
            return error.sqlstate is None or not error.sqlstate.startswith("42")
        return bool(count)
