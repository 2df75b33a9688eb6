"""Counts how many questions the rules answer rightly, wrongly or not at all, on tuned databases and
on held-out ones.

*Tuned* are the demo and the databases of `tests/fixtures/offline`, with which the rules were
developed. *Studied* are those of `benchmarks/studied`, written by people who had not seen the
rules: what they got wrong there was looked at and led to general changes, but not every question
has to be answered. *Held out* are those of `benchmarks/held_out`, which nobody may tune to, and
English questions about the demo, whose words only its semantic file knows. Every question goes to
the whole application over its HTTP interface, without a model. The SQL of its answer and the SQL
that a person wrote are run on one connection:

- right: some choice of the answer's columns gives exactly the rows of the person's SQL, and in its
  order if that ends in an ORDER BY without a LIMIT (with one, it says which rows are wanted). An
  answer may show more columns than were asked for, never other rows or other values;
- wrong: any other answer with SQL, also one without rows;
- refused: no SQL.

A question marked REFUSE can't be answered from the database: an answer with SQL is wrong, any other
is refused. *Kinds* counts how many answerable questions were taken for data questions, and how many
sentences of talk for conversation. A question that can't be answered is not counted there.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import postgast
import psycopg2
from psycopg2.extensions import make_dsn

from app_config import Settings
from databases.app_database import ensure_app_database
from databases.demo import SEMANTIC_FILE
from databases.demo.reader import READER, create_reader, grant_reading
from databases.embedded.embedded_server import EmbeddedServer
from tests.support.asking import Asking
from tests.support.offline_questions import FIXTURES, REFUSE, Case, cases_of, same_rows

HELD_OUT, STUDIED = Path(__file__).parent / "held_out", Path(__file__).parent / "studied"
CHAT = "CHAT"
_KINDS = FIXTURES / "offline" / "kinds.txt"
DEMO_QUESTIONS = (
    "questions_zh.sql",
    "questions_en.sql",
    "questions_more.sql",
    "questions_semantic.sql",
)
_DEMO_IN_ENGLISH = HELD_OUT / "demo_in_english.sql"
_MAX_ROWS = 10_000  # large enough to cut no answer

Rows = list[tuple[Any, ...]]


@dataclass
class RuleResults:
    """The results over some databases.

    Attributes:
        answerable, unanswerable: number of questions by result: right, wrong or refused.
        kinds: number of answerable questions and sentences of talk by whether their kind was
            recognized.
        failed: answerable questions without a right answer, unanswerable ones with an answer.
    """

    answerable: Counter[str] = field(default_factory=Counter)
    unanswerable: Counter[str] = field(default_factory=Counter)
    kinds: Counter[bool] = field(default_factory=Counter)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def line(self, name: str) -> str:
        """Return the findings as a row of a table."""
        right, wrong, refused = (
            _share(self.answerable, verdict) for verdict in ("right", "wrong", "refused")
        )
        answered = f"{self.unanswerable['wrong']} of {self.unanswerable.total()}"
        told = _share(self.kinds, True)
        return f"{name:15}{right:>21}{wrong:>21}{refused:>21}{answered:>23}{told:>22}"


_COLUMNS = ("right", "wrong", "refused")
HEADING = " " * 15 + "".join(f"{column:>21}" for column in _COLUMNS)
HEADING += f"{'unanswerable answered':>23}{'kind told':>22}"


def _share(counts: Counter[Any], verdict: object) -> str:
    total = counts.total()
    return f"{counts[verdict]} of {total}, {100 * counts[verdict] / total:.1f}%" if total else "–"


def held_out_names() -> list[str]:
    """Return the held-out databases."""
    return names_in(HELD_OUT)


def names_in(folder: Path) -> list[str]:
    """Return the databases of a folder that has questions about them."""
    return sorted(path.stem.removesuffix("_questions") for path in folder.glob("*_questions.sql"))


def run(demo_url: str, data_dir: Path) -> Iterator[str]:
    """Measure all databases; yield the report line by line.

    Args:
        demo_url: the demo database.
        data_dir: where the embedded server is.
    """
    yield f"rules, {date.today().isoformat()}"
    yield HEADING
    server = EmbeddedServer.acquire(data_dir)
    try:
        app_url = ensure_app_database(server, "rule_answers_app")
        found = RuleResults()
        in_english = RuleResults()
        with _asking(demo_url, app_url, str(SEMANTIC_FILE)) as ask:
            for name in DEMO_QUESTIONS:
                measure(found, ask, demo_url, cases_of(FIXTURES / name))
            measure(in_english, ask, demo_url, cases_of(_DEMO_IN_ENGLISH))
        for name in sorted(path.stem for path in (FIXTURES / "offline").glob("*_questions.sql")):
            database = name.removesuffix("_questions")
            cases = [*cases_of(FIXTURES / "offline" / f"{name}.sql"), *_talk(database)]
            _measure_made(found, server, app_url, FIXTURES / "offline" / f"{database}.sql", cases)
        yield found.line("tuned")
        yield from (
            f"  {verdict}: {question}" for question, verdict in found.failed
        )  # don't show questions of held-out databases
        for title, folder in (("studied", STUDIED), ("held out", HELD_OUT)):
            others = RuleResults()
            for name in names_in(folder):
                cases = cases_of(folder / f"{name}_questions.sql")
                _measure_made(others, server, app_url, folder / f"{name}.sql", cases)
            yield others.line(title)
        yield in_english.line("demo, held out")
    finally:
        server.release()


def _talk(database: str) -> Iterator[Case]:
    """Yield the sentences of talk in `kinds.txt` for the database."""
    for line in _KINDS.read_text("utf-8").splitlines():
        name, kind, sentence = line.split(" ", 2)
        if name == database and kind == "C":
            yield Case(sentence, CHAT)


def _measure_made(
    found: RuleResults, server: EmbeddedServer, app_url: str, ddl: Path, cases: list[Case]
) -> None:
    with database_of(server, ddl) as url, _asking(url, app_url) as ask:
        measure(found, ask, url, cases)


Ask = Callable[[str], dict[str, Any]]
"""Asks a question; returns `data` of the answer."""


@contextmanager
def _asking(url: str, app_url: str, semantic_file: str = "") -> Iterator[Ask]:
    settings = Settings(
        database_url=url,
        app_database_url=app_url,
        max_rows=_MAX_ROWS,
        audit_log="off",
        semantic_file=semantic_file,
    )
    with Asking(settings) as asking:

        def ask(question: str) -> dict[str, Any]:
            data: dict[str, Any] = asking.sync({"question": question})[1]["data"]
            return data

        yield ask


def measure(found: RuleResults, ask: Ask, url: str, cases: list[Case]) -> None:
    """Ask the questions of `cases` and adds the results to `found`."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True

        def rows(sql: str) -> Rows:
            cursor.execute(sql)
            return cursor.fetchall()

        for case in cases:
            answer = ask(case.question)
            if answer.get("retryable"):  # a passing failure, which says nothing about the rules
                raise RuntimeError(f"{case.question}: {answer['error']}")
            kind = answer.get("response_type", "DATABASE")  # errors come from data questions
            if case.gold != REFUSE:
                found.kinds[(kind == CHAT) == (case.gold == CHAT)] += 1
            if case.gold == CHAT:
                continue
            verdict = _verdict(case.gold, answer.get("sql"), rows)
            (found.unanswerable if case.gold == REFUSE else found.answerable)[verdict] += 1
            if verdict != ("refused" if case.gold == REFUSE else "right"):
                found.failed.append((case.question, verdict))


def _verdict(gold: str, sql: str | None, rows: Callable[[str], Rows]) -> str:
    if sql is None:
        return "refused"
    if gold == REFUSE:
        return "wrong"
    wanted, answered = rows(gold), rows(sql)
    return "right" if same_rows(wanted, answered, in_order=_is_ordered(gold)) else "wrong"


def _is_ordered(sql: str) -> bool:
    select = postgast.parse(sql).stmts[0].stmt.select_stmt
    return bool(select.sort_clause) and not select.HasField("limit_count")


@contextmanager
def database_of(server: EmbeddedServer, ddl: Path) -> Iterator[str]:
    """Make a database from the file, dropped on leaving; gives the reader's URL."""
    name = f"rule_answers_{ddl.stem}"
    _administer(
        server,
        f"DROP DATABASE IF EXISTS {name} WITH (FORCE)",
        f"CREATE DATABASE {name} TEMPLATE template0",
    )
    with closing(psycopg2.connect(make_dsn(server.admin_url, dbname=name))) as admin:
        admin.autocommit = True
        create_reader(admin)
        with admin.cursor() as cursor:
            cursor.execute(ddl.read_text(encoding="utf-8"))
            grant_reading(admin)
            cursor.execute("ANALYZE")
    yield server.url(name, READER)
    _administer(server, f"DROP DATABASE {name} WITH (FORCE)")


def _administer(server: EmbeddedServer, *statements: str) -> None:
    with closing(psycopg2.connect(server.admin_url)) as admin, admin.cursor() as cursor:
        admin.autocommit = True
        for statement in statements:
            cursor.execute(statement)
