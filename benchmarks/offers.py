"""Clicks every question that is offered, and compares statements.

Over the demo and the databases of `benchmarks/offered`, each question goes to the whole application
without a model, each in a conversation of its own. Every sentence that is offered with its answer
or refusal is asked next in such a conversation, and so is what is offered with an answer to that.
The judge knows nothing of how offers are made; it reads SQL. An offer is

- unanswered: no statement, and no question back;
- without rows;
- losing: a condition of the statement that it grows from is in the one that it gives no more;
- other: it gives another statement than it says, such as a split without a group more.

Rewrites and examples of a refusal have no statement before them: they are listed, for reading.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

import psycopg2
import sqlglot
from sqlglot import expressions as sql

from app_config import Settings
from benchmarks.rule_answers import database_of
from databases.app_database import ensure_app_database
from databases.demo import SEMANTIC_FILE
from databases.embedded.embedded_server import EmbeddedServer
from tests.support.asking import Asking
from tests.support.offline_questions import FIXTURES, cases_of

OFFERED = Path(__file__).parent / "offered"
_DEMO_QUESTIONS = ("questions_zh.sql", "questions_en.sql")
_OFFERS = ("choices", "rewrites", "follow_ups")
_PATIENCE_S = 5.0
_UNITS = ("月", "日", "month", "day")
_DEPTH = 2  # offers, and the offers of their answers
# What a follow-up says, by its words; the first that fits.
_SAYINGS = (
    ("split", re.compile(r"拆分|split by")),
    ("top", re.compile(r"前(\d+)名|top (\d+)")),
    ("share", re.compile("比例|percentage")),
    ("before", re.compile("前一天|前一周|上一|before")),
    ("count", re.compile("有多少|how many")),
)

Answer = dict[str, Any]


@dataclass
class ClickedOffers:
    """What became of the offers.

    Attributes:
        verdicts: number of offers by kind and verdict.
        faults: a line for each that is not as it should be.
        refusals: what was offered in place of refused questions.
    """

    asked: int = 0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the report: what was asked, offers by kind, and what is wrong with them."""
        table = [f"{kind:12}{verdict:14}{n:>6}" for (kind, verdict), n in self._sorted()]
        return [f"questions: {self.asked}", *table, *self.faults, *self.refusals]

    def _sorted(self) -> list[tuple[tuple[str, str], int]]:
        return sorted(self.verdicts.items())


def run(demo_url: str, data_dir: Path) -> Iterator[str]:
    """Click all offers of all databases; yield the report line by line.

    Args:
        demo_url: the demo database.
        data_dir: where the embedded server is.
    """
    yield f"offers, {date.today().isoformat()}"
    server = EmbeddedServer.acquire(data_dir)
    try:
        app_url = ensure_app_database(server, "offers_app")
        questions = [
            case.question for name in _DEMO_QUESTIONS for case in cases_of(FIXTURES / name)
        ]
        settings = Settings(
            database_url=demo_url,
            app_database_url=app_url,
            audit_log="off",
            semantic_file=str(SEMANTIC_FILE),
        )
        yield from _clicked("demo", settings, questions)
        for ddl in sorted(OFFERED.glob("*.sql")):
            asked = ddl.with_name(f"{ddl.stem}_questions.txt").read_text("utf-8").splitlines()
            with database_of(server, ddl) as url:
                settings = Settings(database_url=url, app_database_url=app_url, audit_log="off")
                yield from _clicked(ddl.stem, settings, asked)
    finally:
        server.release()


def _clicked(name: str, settings: Settings, questions: list[str]) -> list[str]:
    found = ClickedOffers()
    # Answers wait but milliseconds for follow-ups; here all of them are wanted.
    settings = replace(settings, follow_up_wait_s=_PATIENCE_S)
    with Asking(settings) as asking, Judge(settings.database_url) as judge:
        clicking = _Clicking(asking, judge, found)
        for question in questions:
            clicking.begin(question)

    return [f"== {name}", *found.lines()]


class _Clicking:
    def __init__(self, asking: Asking, judge: "Judge", found: ClickedOffers) -> None:
        self._asking = asking
        self._judge = judge
        self._found = found
        self._numbers = count()

    def begin(self, question: str) -> None:
        """Ask a question, and click what is offered with its answer."""
        self._found.asked += 1
        answer = self._conversed((question,))
        if not answer.get("sql"):
            offered = {kind: answer[kind] for kind in _OFFERS if answer.get(kind)}
            self._found.refusals.append(f"refused: {question}\n    {answer.get('response')}")
            self._found.refusals.append(f"    {offered}")

        self._click((question,), answer)

    def _click(self, said: tuple[str, ...], before: Answer) -> None:
        for kind in _OFFERS:
            for offer in before.get(kind) or ():
                answer = self._conversed((*said, offer))
                verdict = self._judge.verdict_of(before, offer, answer, kind)
                self._found.verdicts[kind, verdict] += 1
                if verdict not in ("good", "asks back"):
                    self._note(verdict, said, before, offer, answer)

                if len(said) < _DEPTH and answer.get("sql"):
                    self._click((*said, offer), answer)

    def _note(
        self, verdict: str, said: tuple[str, ...], before: Answer, offer: str, answer: Answer
    ) -> None:
        told = answer.get("sql") or answer.get("response") or answer.get("error")
        asked = " > ".join((*said, offer))
        self._found.faults.append(f"{verdict}: {asked}\n    {before.get('sql')}\n    {told}")

    def _conversed(self, questions: tuple[str, ...]) -> Answer:
        conversation = f"offers-{next(self._numbers)}-{id(self)}"
        answer: Answer = {}
        for question in questions:
            body = {"question": question, "conversation_id": conversation}
            answer = self._asking.sync(body)[1]["data"]

        return answer


# ------------------------------------------------------------------------------
# the judge


class Judge:
    """Compares the statement of an offer with the one that it grows from.

    Args:
        url: the URL of the database, which tells what its tables are called and which days are
            meant.
    """

    def __init__(self, url: str) -> None:
        self._connection = psycopg2.connect(url)
        self._connection.autocommit = True
        self._called = dict(
            self._rows("SELECT relname, obj_description(oid) FROM pg_class WHERE relkind = 'r'")
        )

    def __enter__(self) -> "Judge":
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self._connection.close()

    def verdict_of(self, before: Answer, offer: str, after: Answer, kind: str) -> str:
        """Say whether an offer kept what it grew from and gave what it says."""
        if not after.get("sql"):
            return "asks back" if after.get("choices") or kind == "choices" else "unanswered"
        if not after["query_result"]["rows"]:
            return "without rows"
        if not before.get("sql"):
            return "good"
        if before["sql"] == after["sql"]:
            return "other: the same"

        earlier, later = _read(before["sql"]), _read(after["sql"])
        saying, number = _saying(offer)
        periods = _periods(earlier)
        lost = _conditions(earlier) - _conditions(later)
        if saying == "before":
            lost -= {one for period in periods for one in period}
        if lost:
            return f"losing {sorted(lost)}"
        no_more = set(_groups(earlier)).difference(_groups(later))
        if no_more:
            return f"other: without {no_more}"

        is_said = self._says(saying, number, offer, (earlier, later), after)
        return "good" if is_said else f"other: no {saying}"

    def _says(
        self,
        saying: str,
        number: str,
        offer: str,
        trees: tuple[sql.Expr, sql.Expr],
        after: Answer,
    ) -> bool:
        """Tell whether the second of two statements is to the first what the offer says."""
        earlier, later = trees
        if saying == "split":
            return self._is_split(offer, earlier, later, after)
        if saying == "top":
            return _limit(later) == number
        if saying == "share":
            return "100" in after["sql"]
        if saying == "before":
            return self._is_just_before(earlier, later)

        counts: int = after["query_result"]["row_count"]
        return saying == "count" and counts == 1

    def _is_split(self, offer: str, earlier: sql.Expr, later: sql.Expr, after: Answer) -> bool:
        if len(_groups(later)) <= len(_groups(earlier)):
            return False

        name = re.split("split by |按", offer)[-1].removesuffix("拆分").strip()
        if name in _UNITS:
            return name in ("月", "month") or "day" in after["query_result"]["columns"]

        labels = after["query_result"].get("labels") or after["query_result"]["columns"]
        tables = {one.name for one in later.find_all(sql.Table)}
        known = [*labels, *tables, *(self._called.get(table) or "" for table in tables)]
        return any(_alike(name, label.replace("_", " ")) for label in known if label)

    def _is_just_before(self, earlier: sql.Expr, later: sql.Expr) -> bool:
        first, second = _periods(later), _periods(earlier)
        if len(first) != 1 or len(second) != 1:
            return False

        ends, begins = first[0][1].split(" < ")[1], second[0][0].split(" >= ")[1]
        return self._rows(f"SELECT ({ends})::date = ({begins})::date")[0][0] is True

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(statement)
            return cursor.fetchall()


def _saying(offer: str) -> tuple[str, str]:
    """Return what the offer says, and the number that it names."""
    for saying, pattern in _SAYINGS:
        match = pattern.search(offer)
        if match is not None:
            return saying, next(filter(None, match.groups()), "")

    return "other", ""


def _limit(tree: sql.Expr) -> str:
    limit = tree.args.get("limit")
    return limit.expression.sql() if limit is not None else ""


def _periods(tree: sql.Expr) -> list[tuple[str, str]]:
    """Return the conditions by which a column lies between two moments, begin and end."""
    conditions = sorted(_conditions(tree))
    begins = {
        condition.split(" >= ")[0]: condition for condition in conditions if " >= " in condition
    }
    ends = {condition.split(" < ")[0]: condition for condition in conditions if " < " in condition}
    return [(begins[name], ends[name]) for name in begins if name in ends]


def _alike(name: str, label: str) -> bool:
    return name.lower() in label.lower() or label.lower() in name.lower()


def _read(statement: str) -> sql.Expr:
    """Return the statement with the names of tables in the place of their aliases."""
    tree = sqlglot.parse_one(statement, read="postgres")
    names = {one.alias_or_name: one.name for one in tree.find_all(sql.Table)}
    for column in tree.find_all(sql.Column):
        if column.table in names:
            column.set("table", sql.to_identifier(names[column.table]))

    return tree


def _conditions(tree: sql.Expr) -> set[str]:
    """Return what is demanded of rows and of groups, anywhere in the statement."""
    found = set()
    for clause in tree.find_all(sql.Where, sql.Having):
        this = clause.this
        parts = this.flatten() if isinstance(this, sql.And) else [this]
        found |= {_plain(part) for part in parts}

    return found


def _plain(part: sql.Expr) -> str:
    text = part.sql("postgres")
    for table in part.find_all(sql.Table):
        text = re.sub(rf"\bAS {re.escape(table.alias)}\b", "", text) if table.alias else text

    return re.sub(r"\w+\.", "", text)


def _groups(tree: sql.Expr) -> list[str]:
    found = []
    for select in tree.find_all(sql.Select):
        grouped = select.args.get("group")
        if grouped is not None:
            found += [_plain(expression) for expression in grouped.expressions]

    return found
