"""Reads clauses that name the table that is built."""

from collections.abc import Sequence

from common.meanings import TableKey
from common.text import Text
from common.values import Catalog, Table
from etl.binding.request_findings import NotBound, choice, choices_of
from etl.binding.source_tables import SAID_TABLES
from etl.clauses.clause_cutting import Clause
from etl.clauses.clause_reading import ClauseReader, RequestReading
from etl.clauses.clause_tokens import Token
from etl.schemas.requirement import Choice
from knowledge.language.atoms import key_of

_TABLE_WORDS = (" table", "表")


class SinkClauses(ClauseReader):
    """Finds the target's name; asks where a request gives several, or means a stored table.

    Args:
        reading: the reading of the request; its draft gets the target.
        text: that the request's tokens are parts of.
    """

    def __init__(self, reading: RequestReading, text: str) -> None:
        super().__init__(reading)
        self._text = text
        self._named: dict[str, None] = {}

    def take(self, clause: Clause) -> None:
        """Take the names behind the word as they are written."""
        for part in _alternatives(clause.tokens):
            tokens = _name_in(part)
            name = self._written_name(tokens) if tokens else ""
            if name:
                self._named[name] = None

    def decide(self) -> None:
        """Set the target, unless the user is asked for it."""
        if not self._named:
            return

        names = list(self._named)
        try:
            name = names[0] if len(names) == 1 else self._one_of(names)
            self._draft.target = self._meant(name)
        except NotBound:
            return

    def _written_name(self, tokens: Sequence[Token]) -> str:
        first, last = tokens[0], tokens[-1]
        if first.mark.literal is not None:
            return first.mark.literal

        written = self._text[first.start : last.end].replace("`", "").replace('"', "").strip()
        if written.isascii():
            written = written.removesuffix(" table").replace(" ", "_").lower()

        return written

    def _one_of(self, names: Sequence[str]) -> str:
        """Return the one of several names that was chosen: one table is built at a time."""
        listed = ", ".join(names)
        prompt = Text(
            f"一次只生成一张表，写入哪一张：{listed}？",
            f"One table is built at a time. Which one: {listed}?",
        )
        choices = choices_of(names)
        return self._reading.findings.choose("target", f"names {listed}", prompt, choices)

    def _meant(self, name: str) -> str:
        """Return the target's name; where a stored table is called so, the one that was chosen."""
        stored = _called(name, self._reading.catalog)
        if not stored:
            return name

        prompt = Text(
            f"数据源里已有称为“{name}”的表。目标表叫什么？",
            f"The datasource has a table that is called “{name}”. What is the target called?",
        )
        choices = [self._new(name)]
        for table in stored:
            choices.append(choice(table.name, self._names.label(table)))

        return self._reading.findings.choose("target", name, prompt, choices)

    def _new(self, name: str) -> Choice:
        label = Text(f"{name}（新表）", f"{name} (a new table)")
        return choice(name, self._reading.findings.shown(label))


def _called(name: str, catalog: Catalog) -> list[Table]:
    """Return the tables that people call so and that are stored under other names."""
    if catalog.by_name.get(name):
        return []

    spellings = {name}
    for word in _TABLE_WORDS:
        spellings.add(name.removesuffix(word))

    spellings.update([f"{one}表" for one in spellings])
    spelling_keys = set(map(key_of, spellings))
    table_by_key: dict[TableKey, Table] = {}
    for called, tables in SAID_TABLES.of(catalog).items():
        if key_of(called) not in spelling_keys:
            continue

        for key in tables:
            table_by_key[key] = catalog.by_key[key]

    return list(table_by_key.values())


def _name_in(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the words of the name: without "save it as the table" before it."""
    place = 0
    for token in tokens:
        is_name = token.means("noise") and token.names
        if is_name or not token.means("sink", "table", "skipped", "noise"):
            break

        place += 1

    named = tokens[place:]
    while named and named[-1].means("instead"):
        named = named[:-1]

    if not named and tokens and tokens[-1].means("noise"):
        return tokens[-1:]  # a name that is a word as well

    return named


def _alternatives(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the parts around "or", each of which names a table."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.means("or"):
            parts.append([])
        else:
            parts[-1].append(token)

    return [part for part in parts if part]
