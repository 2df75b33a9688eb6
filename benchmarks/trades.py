"""Five databases of one size, each of another trade, and questions that fit one or several of them.

`<cluster>/*.txt` say what each trade keeps, in English and Chinese: a thing on each line, its
columns, `#` for numbers, `@` for dates, `=` before values, `>` before the things that it refers to.
Things that every trade has get further tables (`facets.txt`), until a database has its size. Tables
are called as in real databases, another way in each (`_Style`): in the plural, with a prefix, with
comments in one language or both, or without any, but a semantic file.

The questions about the first cluster are divided into those that may be studied and those that are
held out; all those about the second may be studied.

A question names a thing, perhaps a column, a value or another thing. It fits each database that has
the thing, with that column, of it or of what it refers to. So what fits is known from what the
trades keep, without Citu.
"""

import random
import tomllib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

_TABLES = 200
_ROWS = 40
_SHARES = (0.4, 0.4, 0.2)  # of questions: about what one trade has, several have, further tables
_TYPES = {"#": "numeric(12,2)", "@": "date"}

Lang = Literal["en", "zh"]
LANGUAGES: tuple[Lang, ...] = ("en", "zh")
Form = Literal["singular", "plural", "camel", "chinese"]


@dataclass(frozen=True)
class _Style:
    """How the tables and columns of a database are called.

    Attributes:
        comment: made of the English and the Chinese name.
        meanings: whether a semantic file says the Chinese names.
        only: the language in which it has names, if it has none in the other.
    """

    form: Form = "singular"
    prefix: str = ""
    comment: str | None = None
    meanings: bool = False
    only: Lang | None = None


@dataclass(frozen=True)
class Cluster:
    """Databases that one caller may ask: the folder that says what they keep, and their styles."""

    folder: str
    styles: Mapping[str, _Style]

    @property
    def path(self) -> Path:
        """Return where the files of its trades are."""
        return Path(__file__).parent / self.folder


FIRST = Cluster(
    "trades",
    {
        "shop": _Style("plural", comment="{1}"),
        "hospital": _Style(comment="{1}"),
        "freight": _Style(prefix="t_", comment="{0}", only="en"),
        "factory": _Style(prefix="mfg_", comment="{0} / {1}"),
        "university": _Style(meanings=True),
    },
)
SECOND = Cluster(
    "more_trades",
    {
        "bank": _Style("camel", comment="{1}"),
        "hotel": _Style(only="en"),
        "insurer": _Style(prefix="tb_", comment="{1}({0})"),
        "farm": _Style("chinese", only="zh"),
        "library": _Style("plural", meanings=True),
    },
)


@dataclass(frozen=True)
class _Column:
    said: tuple[str, str]  # English, Chinese
    type: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Thing:
    said: tuple[str, str]
    columns: tuple[_Column, ...]
    refers_to: tuple[str, ...] = ()


@dataclass(frozen=True)
class TradeQuestion:
    """A question, and the databases that it fits."""

    text: str
    fits: frozenset[str]


@dataclass
class Trades:
    """What the trades of a cluster keep: things by their English names, by trade."""

    cluster: Cluster
    things: dict[str, dict[str, _Thing]] = field(default_factory=dict)


def trades(cluster: Cluster) -> Trades:
    """Return the trades, each with as many things as its database has tables."""
    facets = list(_things(cluster, "facets"))
    found = Trades(cluster)
    for trade in cluster.styles:
        kept = {one.said[0]: one for one in _things(cluster, trade)}
        more = [(one, facet) for one in kept.values() for facet in facets]
        more.sort(key=lambda pair: zlib.crc32(f"{trade} {pair[0].said} {pair[1].said}".encode()))
        for thing, facet in more[: _TABLES - len(kept)]:
            said = (f"{thing.said[0]} {facet.said[0]}", thing.said[1] + facet.said[1])
            kept[said[0]] = _Thing(said, facet.columns, (thing.said[0],))

        found.things[trade] = kept
    return found


def _things(cluster: Cluster, name: str) -> Iterator[_Thing]:
    for line in (cluster.path / f"{name}.txt").read_text("utf-8").splitlines():
        left, *references = (part.strip() for part in line.split(" > "))
        thing, *columns = (part.strip() for part in left.split("|"))
        refers_to = tuple(one.replace("_", " ") for one in references)
        yield _Thing(_names(thing), tuple(map(_column, columns)), refers_to)


def _names(text: str) -> tuple[str, str]:
    en, _, zh = text.partition(" ")
    return en.replace("_", " "), zh


def _column(text: str) -> _Column:
    names, _, values = text.partition(" = ")
    sign = names[-1]
    if sign in _TYPES:
        return _Column(_names(names[:-1].strip()), _TYPES[sign])

    stored = tuple(one.strip() for one in values.split(",")) if values else ()
    return _Column(_names(names), "text", stored)


def ddl(kept: Trades, trade: str) -> str:
    """Return the statements that make the database of a trade, with rows."""
    things = kept.things[trade]
    style = kept.cluster.styles[trade]
    return ";".join(part for thing in things.values() for part in _table(style, thing, things))


def _table(style: _Style, thing: _Thing, things: Mapping[str, _Thing]) -> Iterator[str]:
    table = _table_name(style, thing.said)
    columns = ["id bigint PRIMARY KEY"]
    columns += [f"{_reference(style, things[one].said)} bigint" for one in thing.refers_to]
    columns += [f"{_column_name(style, one.said)} {one.type}" for one in thing.columns]
    yield f"CREATE TABLE {table} ({', '.join(columns)})"
    yield f"INSERT INTO {table} SELECT {', '.join(_row(thing))} FROM generate_series(1, {_ROWS}) n"
    if style.comment is not None:
        yield f"COMMENT ON TABLE {table} IS '{style.comment.format(*thing.said)}'"
        for one in thing.columns:
            said = style.comment.format(*one.said)
            yield f"COMMENT ON COLUMN {table}.{_column_name(style, one.said)} IS '{said}'"


def _row(thing: _Thing) -> Iterator[str]:
    yield "n"
    yield from ("n" for _ in thing.refers_to)
    for column in thing.columns:
        if column.values:
            stored = ", ".join(f"'{value}'" for value in column.values)
            yield f"(ARRAY[{stored}])[n % {len(column.values)} + 1]"
        elif column.type == "text":
            yield "'x' || n"
        elif column.type == "date":
            yield "DATE '2023-01-01' + n * 17"
        else:
            yield "n * 1.5"


def references(kept: Trades, trade: str) -> str:
    """Return the statements that make the foreign keys of a trade."""
    style = kept.cluster.styles[trade]
    things = kept.things[trade]
    return ";".join(
        f"ALTER TABLE {_table_name(style, thing.said)}"
        f" ADD FOREIGN KEY ({_reference(style, things[other].said)})"
        f" REFERENCES {_table_name(style, things[other].said)} (id)"
        for thing in things.values()
        for other in thing.refers_to
    )


def semantic_file(kept: Trades, trade: str) -> dict[str, Any] | None:
    """Return what a semantic file says of a trade's tables; None: there is none."""
    style = kept.cluster.styles[trade]
    if not style.meanings:
        return None

    tables = {}
    for thing in kept.things[trade].values():
        columns = {
            _column_name(style, one.said): {"names": {"zh": one.said[1]}} for one in thing.columns
        }
        name = _table_name(style, thing.said)
        tables[name] = {"names": {"zh": thing.said[1]}, "columns": columns}
    return {"version": 1, "tables": tables}


def _table_name(style: _Style, said: tuple[str, str]) -> str:
    if style.form == "plural":
        return style.prefix + _snake(_many(said[0]))
    if style.form == "camel":
        return f'"{_camel(said[0])}"'

    return style.prefix + _column_name(style, said)


def _column_name(style: _Style, said: tuple[str, str]) -> str:
    if style.form == "chinese":
        return said[1]
    if style.form == "camel":
        called = _camel(said[0])
        return f'"{called[0].lower()}{called[1:]}"'

    return _snake(said[0])


def _reference(style: _Style, said: tuple[str, str]) -> str:
    name = _column_name(style, said)
    if style.form == "chinese":
        return f"{name}编号"
    if style.form == "camel":
        return f'{name[:-1]}Id"'

    return f"{name}_id"


def _camel(said: str) -> str:
    return "".join(word.capitalize() for word in said.split())


def _snake(said: str) -> str:
    return said.replace(" ", "_")


def _many(said: str) -> str:
    """Return the plural, not by Citu's own rules, so that a mistake in these would be seen."""
    if said == "alumnus":
        return "alumni"
    if said.endswith("thesis"):
        return said.removesuffix("is") + "es"
    if said.endswith(("s", "x", "ch", "sh")):
        return said + "es"
    if said.endswith("y") and said[-2] not in "aeou":
        return said[:-1] + "ies"

    return said + "s"


def hand_written(cluster: Cluster) -> list[TradeQuestion]:
    """Return the questions that a person has written, without a look at the rules."""
    path = cluster.path / "questions.txt"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    parts = (line.partition(": ") for line in lines)
    return [TradeQuestion(text, frozenset(fits.split())) for fits, _, text in parts]


def is_foreign(kept: Trades, asked: TradeQuestion, lang: Lang) -> bool:
    """Tell whether a question fits only databases that have no names in its language."""
    styles = kept.cluster.styles
    return all(styles[trade].only not in (None, lang) for trade in asked.fits)


def made_questions(kept: Trades, lang: Lang, count: int, *, held_out: bool) -> list[TradeQuestion]:
    """Return questions made of the things of all trades, another choice where held out."""
    drawn = random.Random(f"{lang} {held_out}")
    ways = tomllib.loads((kept.cluster.path / "sentences.toml").read_text("utf-8"))[lang]
    sorts = _sorts(kept)
    found: dict[str, TradeQuestion] = {}
    while len(found) < count:
        trade, thing = drawn.choice(drawn.choices(sorts, _SHARES)[0])
        kind = drawn.choice(list(ways))
        half = len(ways[kind]) // 2
        way = drawn.choice(ways[kind][half:] if held_out else ways[kind][:half])
        asked = _asked(kept, trade, thing, way, lang, drawn)
        if asked is not None:
            found[asked.text] = asked

    return list(found.values())


def _sorts(kept: Trades) -> tuple[list[tuple[str, _Thing]], ...]:
    """Return what only one trade has, what several have, and the further tables of all."""
    facets = {facet.said[0] for facet in _things(kept.cluster, "facets")}
    alone, shared, further = [], [], []
    for trade, things in kept.things.items():
        for name, thing in things.items():
            having = sum(name in others for others in kept.things.values())
            if name.rpartition(" ")[2] in facets:
                further.append((trade, thing))
            elif having > 1:
                shared.append((trade, thing))
            else:
                alone.append((trade, thing))

    return alone, shared, further


def _asked(
    kept: Trades, trade: str, thing: _Thing, way: str, lang: Lang, drawn: random.Random
) -> TradeQuestion | None:
    """Fill in a sentence; None where the thing has nothing of what it asks about."""
    at = 0 if lang == "en" else 1
    column, other = None, None
    if "{column}" in way or "{value}" in way:
        fitting = [one for one in thing.columns if _suits(one, way, lang)]
        if not fitting:
            return None
        column = drawn.choice(fitting)

    if "{other" in way:
        if not thing.refers_to:
            return None
        other = kept.things[trade][drawn.choice(thing.refers_to)].said[at]

    value = drawn.choice(column.values) if column is not None and "{value}" in way else None
    words: Mapping[str, str | None] = {
        "thing": thing.said[at],
        "things": _many(thing.said[at]),
        "column": column.said[at] if column is not None else None,
        "value": value,
        "other": other,
        "others": _many(other) if other is not None else None,
    }
    named = column.said[at] if column is not None and "{column}" in way else None
    fits = frozenset(
        one
        for one in kept.things
        if _fits(kept.things[one], thing.said[at], named, value, other, at)
    )
    return TradeQuestion(way.format(**words), fits)


def _suits(column: _Column, way: str, lang: Lang) -> bool:
    """Tell whether a sentence can be about the column."""
    if "{value}" in way:
        return bool(column.values) and all(one.isascii() == (lang == "en") for one in column.values)
    if any(sign in way for sign in ("2024", "2023", "month", "每月", "latest", "最近")):
        return column.type == "date"
    if any(
        sign in way for sign in ("average", "total", "highest", "Top 5", "平均", "最高", "合计")
    ):
        return column.type.startswith("numeric")
    if any(sign in way for sign in ("前五", "最大")):
        return column.type.startswith("numeric")

    return bool(column.values)


def _fits(
    things: Mapping[str, _Thing],
    thing: str,
    column: str | None,
    value: str | None,
    other: str | None,
    at: int,
) -> bool:
    for one in things.values():
        if one.said[at] != thing:
            continue

        reached = _reached(things, one)
        columns = [
            found
            for there in reached
            for found in there.columns
            if column is None or found.said[at] == column
        ]
        if column is not None and not columns:
            continue
        if value is not None and not any(value in found.values for found in columns):
            continue
        if other is None or any(there.said[at] == other for there in reached[1:]):
            return True

    return False


def _reached(things: Mapping[str, _Thing], thing: _Thing) -> Sequence[_Thing]:
    """Return a thing and what it refers to, also by others."""
    found = [thing]
    for one in found:
        found += [
            things[name] for name in one.refers_to if all(things[name] != had for had in found)
        ]

    return found
