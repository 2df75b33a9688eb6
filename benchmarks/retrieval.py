"""How often the tables that a question needs are among the first ten that are ranked for it, and
what a ranking takes.

Every question comes with the tables of its answer, or with SQL whose tables are taken. It counts as
found when all of them are among the first ten. Each database is measured by itself, and all
together as one schema of `pool` tables: where the databases have fewer, copies of their tables
under other names and made-up tables (`synthetic_schema`) are added. Questions in Chinese are
counted apart. Only words are compared; no model is asked.

Without a file the questions are those of the tests' databases, and apart from them those of
`benchmarks/held_out`, which nobody may tune to: of them only the share is shown.

A file has one JSON object a line, `{"id"?, "question", "sql" | "tables", "database"?, "lang"?}`.
Without `database` the question is about the database at `--database-url`, else about the demo.
`database` names one of the tests' databases, or one of `schemas`: a folder with `<database>.sql`,
the statements that make it (by default the file's own folder), or a JSON file with a list of
`{"db_id", "table_names_original", "column_names_original", "column_types", "foreign_keys",
"primary_keys"}`, with which text-to-SQL questions are usually published.
"""

import asyncio
import json
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from benchmarks.large_schema import QUESTIONS
from benchmarks.rule_answers import CHAT, HELD_OUT, database_of, held_out_names
from benchmarks.synthetic_schema import synthetic_catalog
from common.errors import StatementRejected
from common.text import language_of
from common.values import Catalog, Column, ForeignKey, Table
from databases.embedded.embedded_server import EmbeddedServer
from knowledge.tables.relevance import TableIndex
from sqltree.parsing import parse
from tests.support.databases import open_asked
from tests.support.offline_questions import FIXTURES, REFUSE, cases_of

FIRST = 10  # tables among which all that are needed have to be
POOL = 876  # tables of the one schema
_TIMED = (100, 10_000)  # tables
_BARS_MS = (5, 20)
_FROM = re.compile(r'\b(?:FROM|JOIN)\s+([\w."`]+)', re.IGNORECASE)
_DEMO_QUESTIONS = ("questions_zh.sql", "questions_en.sql", "questions_more.sql")
_HELD_OUT = "held out"


class UnknownDatabase(ValueError):
    """A line names a database of which there is no description."""


Names = Mapping[str, Mapping[str, str]]
"""Database → what each of its tables is called in the one schema; all in lower case."""


@dataclass(frozen=True)
class RetrievalQuestion:
    """A question and the names, in lower case, of the tables that its answer needs."""

    id: str
    question: str
    tables: frozenset[str]
    database: str
    lang: str


@dataclass
class RetrievalResults:
    """Questions by language, and whether all of their tables were among the first ten."""

    counts: Counter[tuple[str, bool]]
    missed: list[RetrievalQuestion]

    def line(self, name: str) -> str:
        """Return the findings as a row of a table."""
        return f"{name:38}{self._share('en'):>22}{self._share('zh'):>22}"

    def _share(self, lang: str) -> str:
        found, missed = self.counts[lang, True], self.counts[lang, False]
        return (
            f"{found} of {found + missed}, {100 * found / (found + missed):.1f}%"
            if found + missed
            else "–"
        )


HEADING = f"{'':38}{'English':>22}{'Chinese':>22}"


# ------------------------------------------------------------------------------
# questions


def needed(sql: str) -> frozenset[str]:
    """Return the names of the tables that `sql` reads, in lower case and without their schemas.

    What PostgreSQL can't parse, because it is another database's SQL, is searched for FROM and
    JOIN.
    """
    try:
        statements = parse(sql)
    except StatementRejected:
        return frozenset(
            re.split(r"\.", name)[-1].strip('"`').lower() for name in _FROM.findall(sql)
        )
    nodes: list[Any] = [statement.node for statement in statements]
    names, made = set(), set()
    while nodes:
        node = nodes.pop()
        if isinstance(node, Mapping):
            names.add(node.get("relname"))
            made.add(node.get("ctename"))
            nodes.extend(node.values())
        elif isinstance(node, Sequence) and not isinstance(node, str):
            nodes.extend(node)
    return frozenset(name.lower() for name in names - made if name)


def questions_of(path: Path) -> list[RetrievalQuestion]:
    """Return the questions of a file with a JSON object a line.

    Raises:
        ValueError: a line is no such object.
    """
    asked = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.strip():
            try:
                asked.append(_question(json.loads(line), f"{path.stem}:{number}"))
            except (KeyError, AttributeError, json.JSONDecodeError) as exc:
                raise ValueError(
                    f"{path}, line {number}: no object with question and sql or tables"
                ) from exc
    return asked


def _question(found: dict[str, Any], name: str) -> RetrievalQuestion:
    tables = found.get("tables")
    names = (
        needed(found["sql"])
        if tables is None
        else {str(table).rpartition(".")[2].lower() for table in tables}
    )
    question = found["question"]
    lang = found.get("lang") or language_of(question)
    return RetrievalQuestion(
        str(found.get("id", name)),
        question,
        frozenset(names),
        found.get("database") or "demo",
        lang,
    )


def _cases(paths: Iterable[Path], database: str) -> Iterator[RetrievalQuestion]:
    for path in paths:
        for number, case in enumerate(cases_of(path), 1):
            if case.gold not in (REFUSE, CHAT):
                name = f"{path.stem}:{number}"
                yield RetrievalQuestion(
                    name, case.question, needed(case.gold), database, language_of(case.question)
                )


def tuned_questions() -> Iterator[RetrievalQuestion]:
    """Yield those of the databases that the rules were worked on with."""
    yield from _cases((FIXTURES / name for name in _DEMO_QUESTIONS), "demo")
    for path in sorted((FIXTURES / "offline").glob("*_questions.sql")):
        yield from _cases([path], path.stem.removesuffix("_questions"))


def held_out_questions() -> Iterator[RetrievalQuestion]:
    """Yield those that nobody may tune to."""
    for name in held_out_names():
        yield from _cases([HELD_OUT / f"{name}_questions.sql"], name)


# ------------------------------------------------------------------------------
# catalogs


def described(published: Mapping[str, Any]) -> Catalog:
    """Return the catalogue of one database of a JSON file, as the module's docstring describes
    it.
    """
    primary = _primary_places(published["primary_keys"])
    names = published["table_names_original"]
    tables = [_described_table(published, number, primary) for number in range(len(names))]
    return Catalog(tuple(tables))


def _primary_places(keys: Iterable[int | list[int]]) -> set[int]:
    """Return the places of all columns of primary keys; a key of several is a list of them."""
    places: set[int] = set()
    for key in keys:
        places.update(key if isinstance(key, list) else [key])
    return places


def _described_table(published: Mapping[str, Any], number: int, primary: Collection[int]) -> Table:
    """Return the table of that number."""
    names = published["table_names_original"]
    columns = published["column_names_original"]
    types = published["column_types"]
    own = [at for at, (table, _) in enumerate(columns) if table == number]
    keys = []
    for here, there in published["foreign_keys"]:
        table, column = columns[here]
        other_table, other_column = columns[there]
        if table == number:
            keys.append(ForeignKey((column,), ("public", names[other_table]), (other_column,)))
    return Table(
        "public",
        names[number],
        "table",
        tuple(Column(columns[at][1], types[at]) for at in own),
        primary_key=tuple(columns[at][1] for at in own if at in primary),
        foreign_keys=tuple(keys),
    )


def _catalogs(
    demo_url: str, server: EmbeddedServer, schemas: Path | None
) -> Callable[[str], Catalog]:
    """Give the catalogue of the database of a name; each is read once."""
    published: dict[str, Mapping[str, Any]] = {}
    folders = [FIXTURES / "offline", HELD_OUT]
    if schemas is not None and schemas.is_file():
        listed = json.loads(schemas.read_text("utf-8"))
        published = {one["db_id"]: one for one in listed}
    elif schemas is not None:
        folders.insert(0, schemas)

    @cache
    def catalog(name: str) -> Catalog:
        if name in published:
            return described(published[name])
        for folder in folders:
            path = folder / f"{name}.sql"
            if path.is_file():
                return _made(server, path)
        if name == "demo":
            return _read(demo_url)
        raise UnknownDatabase(f"there is no description of the database {name}")

    return catalog


def _made(server: EmbeddedServer, path: Path) -> Catalog:
    """Return the catalogue of the database that a file's statements make."""
    with database_of(server, path) as url:
        return _read(url)


def _read(url: str) -> Catalog:
    database = open_asked(url, pool_size=1)
    try:
        return asyncio.run(database.catalog())
    finally:
        database.close()


def pooled(catalogs: Mapping[str, Catalog], most: int = POOL) -> tuple[Catalog, Names]:
    """Return all tables as one schema, with others up to `most`; and for each database, what its
    tables are called there.

    A table whose name is taken gets the name of its database before its own.
    """
    taken: set[str] = set()
    lowered: dict[str, dict[str, str]] = {}
    own: list[Table] = []
    for database, catalog in catalogs.items():
        names = _untaken_names(database, catalog, taken)
        own += [_moved(table, names) for table in catalog.tables]
        lowered[database] = {table.lower(): called.lower() for table, called in names.items()}
    copies = (replace(table, name=f"{table.name}_bak") for table in own)
    made_up = (table for table in synthetic_catalog(most).tables if table.name not in taken)
    others = islice(chain(copies, made_up), max(0, most - len(own)))
    return Catalog((*own, *others)), lowered


def _untaken_names(database: str, catalog: Catalog, taken: set[str]) -> dict[str, str]:
    """Return what the tables of a database are called beside others, and note these names."""
    names = {}
    for table in catalog.tables:
        called = table.name
        if called.lower() in taken:
            called = f"{database}_{called}"
        taken.add(called.lower())
        names[table.name] = called
    return names


def _moved(table: Table, names: Mapping[str, str]) -> Table:
    keys = (
        replace(key, target=("public", names[key.target[1]]))
        for key in table.foreign_keys
        if key.target[1] in names
    )
    return replace(table, schema="public", name=names[table.name], foreign_keys=tuple(keys))


# ------------------------------------------------------------------------------
# measuring


def measure(
    index: TableIndex, questions: Iterable[RetrievalQuestion], names: Names | None = None
) -> RetrievalResults:
    """Tell whether all tables of each question are among the first ten of `index`."""
    found = RetrievalResults(Counter(), [])
    for asked in questions:
        called = names[asked.database] if names else {}
        wanted = {called.get(table, table) for table in asked.tables}
        ranked = {table.name.lower() for table in index.ranked(asked.question, FIRST)}
        found.counts[asked.lang, wanted <= ranked] += 1
        if not wanted <= ranked:
            found.missed.append(asked)
    return found


def _single(
    questions: Sequence[RetrievalQuestion], catalog: Callable[[str], Catalog]
) -> RetrievalResults:
    whole = RetrievalResults(Counter(), [])
    for name in dict.fromkeys(asked.database for asked in questions):
        one = measure(
            TableIndex(catalog(name)), [asked for asked in questions if asked.database == name]
        )
        whole.counts.update(one.counts)
        whole.missed += one.missed
    return whole


def run(
    demo_url: str,
    data_dir: Path,
    *,
    files: Sequence[Path] = (),
    schemas: Path | None = None,
    pool: int = POOL,
) -> Iterator[str]:
    """Yield measures; gives the lines of a report as they are known.

    Args:
        demo_url: the database of questions that name none.
        data_dir: where the embedded server is.
        files: questions; none: the tests' and the held-out ones.
        schemas: where the databases of `files` are described.
        pool: tables of the one schema.

    Raises:
        UnknownDatabase: a question is about a database that is described nowhere.
    """
    if files:
        groups = {str(path): questions_of(path) for path in files}
        schemas = schemas or files[0].parent
    else:
        groups = {"tuned": list(tuned_questions()), _HELD_OUT: list(held_out_questions())}
    yield f"retrieval, {date.today().isoformat()}: all tables among the first {FIRST}"
    yield HEADING
    server = EmbeddedServer.acquire(data_dir)
    try:
        catalog = _catalogs(demo_url, server, schemas)
        yield from _measured(groups, catalog, pool)
    finally:
        server.release()
    for tables, bar in zip(_TIMED, _BARS_MS, strict=True):
        yield _timed(tables, bar)


def _measured(
    groups: Mapping[str, Sequence[RetrievalQuestion]],
    catalog: Callable[[str], Catalog],
    pool: int,
) -> Iterator[str]:
    """Yield the results of each group, database by database and in one schema."""
    everything = chain.from_iterable(groups.values())
    databases = dict.fromkeys(asked.database for asked in everything)
    whole, names = pooled({name: catalog(name) for name in databases}, pool)
    index = TableIndex(whole)
    for name, questions in groups.items():
        found = {
            "single": _single(questions, catalog),
            f"one schema of {len(whole.tables)}": measure(index, questions, names),
        }
        for kind, results in found.items():
            yield results.line(f"{name}, {kind}")
            if name == _HELD_OUT:
                continue  # at these nobody may look
            for asked in results.missed:
                yield f"  missed: {asked.id} {asked.question}"


def _timed(tables: int, bar: int) -> str:
    index = TableIndex(synthetic_catalog(tables))
    questions = [*QUESTIONS, *(asked.question for asked in tuned_questions())]
    taken = []
    for question in questions:
        started = time.process_time()
        index.ranked(question, FIRST)
        taken.append(1000 * (time.process_time() - started))
    high = statistics.quantiles(taken, n=20)[-1]
    return (
        f"{tables} tables: a ranking takes {statistics.median(taken):.1f} ms of CPU at the median, "
        f"{high:.1f} ms at the"
        f" 95th percentile, {max(taken):.1f} ms at the most (bar {bar})"
    )
