"""Five databases of one size, each of another trade, and questions that fit one or several of them.

`trades/*.txt` say what each trade keeps, in English and Chinese: a thing on each line, its columns,
`#` for numbers, `@` for dates, `=` before values, `>` before the things that it refers to. Things
that every trade has get further tables (`facets.txt`), until a database has its size. Tables are
called as in real databases, another way in each: in the plural, with a prefix, with comments in one
language or both, or without any, but a semantic file.

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

TRADES = ("shop", "hospital", "freight", "factory", "university")
_FOLDER = Path(__file__).parent / "trades"
_TABLES = 200
_ROWS = 40
_SHARES = (0.4, 0.4, 0.2)  # of questions: about what one trade has, several have, further tables
_TYPES = {"#": "numeric(12,2)", "@": "date"}
_PREFIX = {"factory": "mfg_", "freight": "t_"}
_COMMENT = {"shop": "{1}", "hospital": "{1}", "freight": "{0}", "factory": "{0} / {1}"}

Lang = Literal["en", "zh"]
LANGUAGES: tuple[Lang, ...] = ("en", "zh")
_ONLY_ENGLISH = frozenset({"freight"})


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
    """What the trades keep: things by their English names, by trade."""

    things: dict[str, dict[str, _Thing]] = field(default_factory=dict)


def trades() -> Trades:
    """Return the five trades, each with as many things as its database has tables."""
    facets = list(_things("facets"))
    found = Trades()
    for trade in TRADES:
        kept = {one.said[0]: one for one in _things(trade)}
        more = [(one, facet) for one in kept.values() for facet in facets]
        more.sort(key=lambda pair: zlib.crc32(f"{trade} {pair[0].said} {pair[1].said}".encode()))
        for thing, facet in more[: _TABLES - len(kept)]:
            said = (f"{thing.said[0]} {facet.said[0]}", thing.said[1] + facet.said[1])
            kept[said[0]] = _Thing(said, facet.columns, (thing.said[0],))

        found.things[trade] = kept
    return found


def _things(name: str) -> Iterator[_Thing]:
    for line in (_FOLDER / f"{name}.txt").read_text("utf-8").splitlines():
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
    return ";".join(part for thing in things.values() for part in _table(trade, thing))


def _table(trade: str, thing: _Thing) -> Iterator[str]:
    table = _table_name(trade, thing.said[0])
    columns = ["id bigint PRIMARY KEY"]
    columns += [f"{_snake(one)}_id bigint" for one in thing.refers_to]
    columns += [f"{_snake(one.said[0])} {one.type}" for one in thing.columns]
    yield f"CREATE TABLE {table} ({', '.join(columns)})"
    yield f"INSERT INTO {table} SELECT {', '.join(_row(thing))} FROM generate_series(1, {_ROWS}) n"
    comment = _COMMENT.get(trade)
    if comment is not None:
        yield f"COMMENT ON TABLE {table} IS '{comment.format(*thing.said)}'"
        for one in thing.columns:
            said = comment.format(*one.said)
            yield f"COMMENT ON COLUMN {table}.{_snake(one.said[0])} IS '{said}'"


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
    return ";".join(
        f"ALTER TABLE {_table_name(trade, thing.said[0])} ADD FOREIGN KEY ({_snake(other)}_id)"
        f" REFERENCES {_table_name(trade, other)} (id)"
        for thing in kept.things[trade].values()
        for other in thing.refers_to
    )


def semantic_file(kept: Trades, trade: str) -> dict[str, Any] | None:
    """Return what a semantic file says of a trade's tables; None: its comments say it."""
    if trade in _COMMENT:
        return None

    tables = {}
    for name, thing in kept.things[trade].items():
        columns = {_snake(one.said[0]): {"names": {"zh": one.said[1]}} for one in thing.columns}
        tables[_table_name(trade, name)] = {"names": {"zh": thing.said[1]}, "columns": columns}
    return {"version": 1, "tables": tables}


def _table_name(trade: str, said: str) -> str:
    called = _many(said) if trade == "shop" else said
    return _PREFIX.get(trade, "") + _snake(called)


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


def hand_written() -> list[TradeQuestion]:
    """Return the questions that a person has written, without a look at the rules."""
    lines = (_FOLDER / "questions.txt").read_text("utf-8").splitlines()
    parts = (line.partition(": ") for line in lines)
    return [TradeQuestion(text, frozenset(fits.split())) for fits, _, text in parts]


def is_foreign(asked: TradeQuestion, lang: Lang) -> bool:
    """Tell whether a question fits only a database that has no names in its language."""
    return lang == "zh" and asked.fits <= _ONLY_ENGLISH


def made_questions(kept: Trades, lang: Lang, count: int, *, held_out: bool) -> list[TradeQuestion]:
    """Return questions made of the things of all trades, another choice where held out."""
    drawn = random.Random(f"{lang} {held_out}")
    ways = tomllib.loads((_FOLDER / "sentences.toml").read_text("utf-8"))[lang]
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
    facets = {facet.said[0] for facet in _things("facets")}
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
        one for one in TRADES if _fits(kept.things[one], thing.said[at], named, value, other, at)
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
    if "前五" in way:
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
