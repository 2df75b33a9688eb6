"""Calls every built-in function and operator that the guard accepts with long values, and says
which of them run on after their statement timeout, or take much memory.

    python -m benchmarks.uninterrupted_calls URL

URL is of a server of one's own, for a superuser: what doesn't end is killed, which restarts the
server. `guard/builtin_costs.toml` lists what this has shown to be quick.
"""

import asyncio
import itertools
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg2

from common.errors import StatementRejected
from guard import Guard
from tests.support.databases import open_asked

TIMEOUT_MS = 500
_PATIENCE_S = 5.0  # beyond the timeout
_MOST_MB = 256
_NUMBER_TYPES = frozenset(("int4", "int8", "numeric"))
_AMOUNTS = ("1000000", "2147483647", "ascii(chr(1000000))", "'10.0.0.0'::inet - '0.0.0.0'::inet")
TABLE = """
DROP TABLE IF EXISTS long_values;
CREATE TABLE long_values AS SELECT n AS id, 'a' || n AS t,
    ('[' || n || ',' || n || ']')::jsonb AS j,
    point(n % 100, n / 100) AS p, int4range(2 * n, 2 * n + 1) AS r, date '2000-01-01' + n AS d
FROM generate_series(1, 100000) AS n;
ANALYZE long_values
"""
_GATHERED = "(SELECT {} FROM long_values)"
LONG: Mapping[str, Sequence[str]] = {
    "text": ("repeat('ab', 500000)", _GATHERED.format("string_agg(t, ' ')")),
    "bytea": ("convert_to(repeat('ab', 500000), 'UTF8')",),
    "_text": ("string_to_array(repeat('ab,', 300000), ',')", _GATHERED.format("array_agg(t)")),
    "_int4": (_GATHERED.format("array_agg(id)"), "ARRAY(SELECT generate_series(1, 60000))"),
    "jsonb": (
        _GATHERED.format("jsonb_agg(id)"),
        _GATHERED.format("jsonb_object_agg(t, id)"),
        "('[' || repeat('1,', 300000) || '1]')::jsonb",
    ),
    "json": (_GATHERED.format("json_agg(t)"), "('[' || repeat('1,', 300000) || '1]')::json"),
    "jsonpath": (
        "'$[*] ? (@ == $[*])'", "'$[*] ? (@[*] == @[*])'", "'$.**'", "'$[*] ? (@ > 1)'",
        "'$[*] ? (exists (@ ? (@ == $[*])))'", "'$[0,0,0][0,0,0][0,0,0][0,0,0][0,0,0][0,0,0]'",
    ),
    "numeric": ("repeat('9', 100000)::numeric", "(10::numeric ^ 100000)"),
    "tsvector": (
        "to_tsvector('simple', " + _GATHERED.format("string_agg(t, ' ')") + ")",
        "array_to_tsvector(" + _GATHERED.format("array_agg(t)") + ")",
    ),
    "tsquery": (
        "(repeat('a&', 20000) || 'a')::tsquery", "(repeat('a<->', 20000) || 'a')::tsquery",
    ),
    "polygon": ("('(' || repeat('(0,0),(1,1),', 20000) || '(0,0))')::polygon",),
    "path": ("('[' || repeat('(0,0),(1,1),', 20000) || '(0,0)]')::path",),
    "varbit": ("repeat('10', 500000)::varbit",),
    "bit": ("repeat('10', 500000)::bit(1000000)",),
    "xml": (
        _GATHERED.format("xmlagg(xmlelement(name a, t))"),
        "('<a>' || repeat('<b/>', 200000) || '</a>')::xml",
    ),
    "int4multirange": (_GATHERED.format("range_agg(r)"),),
    "record": ("ROW(repeat('\"', 500000), ROW(repeat('\"', 500000)))",),
}  # fmt: skip
_SAME = {
    "varchar": "text", "bpchar": "text", "name": "text", "cstring": "text", "any": "text",
    "anyelement": "text", "anycompatible": "text", "anynonarray": "text",
    "anyarray": "_int4", "anycompatiblearray": "_int4", "_int8": "_int4", "_float8": "_int4",
    "_numeric": "_int4", "_jsonb": "_text", "_bytea": "_text",
    "anymultirange": "int4multirange", "anycompatiblemultirange": "int4multirange",
}  # fmt: skip
_SHORT = {
    "int2": "1::int2", "int4": "1", "int8": "1", "float4": "1.5", "float8": "1.5", "bool": "true",
    "date": "date '2024-01-01'", "timestamp": "timestamp '2024-01-01'", "char": "'a'::\"char\"",
    "timestamptz": "timestamptz '2024-01-01'", "time": "time '10:00'", "timetz": "timetz '10:00'",
    "interval": "interval '1 day'", "inet": "'10.0.0.1'::inet", "cidr": "'10.0.0.0/8'::cidr",
    "oid": "1::oid", "uuid": "'00000000-0000-0000-0000-000000000001'::uuid", "point": "point(1, 2)",
    "box": "box(point(0, 0), point(1, 1))", "circle": "circle(point(0, 0), 1)",
    "lseg": "lseg(point(0, 0), point(1, 1))", "line": "line(point(0, 0), point(1, 1))",
    "regconfig": "'simple'", "money": "1::money", "int4range": "int4range(1, 5)",
    "anyrange": "int4range(1, 5)", "anycompatiblerange": "int4range(1, 5)",
    "macaddr": "'08:00:2b:01:02:03'::macaddr", "tid": "'(0,1)'::tid", "xid": "'1'::xid",
    "text": "'a'", "numeric": "1.5", "jsonb": "'{\"a\": 1}'::jsonb", "json": "'{\"a\": 1}'::json",
    "jsonpath": "'$.a'", "_text": "ARRAY['a']", "_int4": "ARRAY[1]", "bytea": "'a'::bytea",
    "xml": "'<a/>'::xml", "tsvector": "'a'::tsvector", "tsquery": "'a'::tsquery",
}  # fmt: skip
_FUNCTIONS = """
SELECT DISTINCT p.proname, (SELECT array_agg(t.typname::text ORDER BY a.n)
    FROM unnest(p.proargtypes) WITH ORDINALITY AS a (type, n) JOIN pg_type t ON t.oid = a.type)
FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind IN ('f', 'a')
    AND p.pronargs > 0 AND NOT EXISTS (
        SELECT 1 FROM unnest(p.proargtypes) a JOIN pg_type t ON t.oid = a
            WHERE t.typname = 'internal')
ORDER BY 1, 2
"""
_OPERATORS = """
SELECT DISTINCT oprname, (SELECT typname::text FROM pg_type WHERE oid = oprleft),
    (SELECT typname::text FROM pg_type WHERE oid = oprright)
FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace ORDER BY 1, 2, 3
"""


@dataclass
class CallsFound:
    """The ends of the calls.

    Attributes:
        refused, failed, ended: how many the guard refused, PostgreSQL refused, and ended in time.
        endless: that ran on after their timeout.
        large: that took more memory than they may.
    """

    refused: int = 0
    failed: int = 0
    ended: int = 0
    slowest: list[tuple[float, str]] = field(default_factory=list)
    endless: list[str] = field(default_factory=list)
    large: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the findings as a person reads them."""
        counts = f"{self.refused} refused, {self.failed} failed, {self.ended} ended in time"
        slow = [f"{seconds:.1f} s: {sql}" for seconds, sql in sorted(self.slowest)[-20:]]
        endless = [f"runs on: {sql}" for sql in self.endless]
        return [counts, *slow, *endless, *(f"takes memory: {sql}" for sql in self.large)]


def _values(type_name: str, *, is_long: bool) -> Sequence[str]:
    """Return expressions of the type; long ones where there are any."""
    name = _SAME.get(type_name, type_name)
    if is_long and name in LONG:
        return LONG[name]
    found = _SHORT.get(name)
    return (found,) if found is not None else (f"NULL::{type_name}",)


def calls(connection: "psycopg2.extensions.connection") -> Iterator[str]:
    """Yield a statement for each function and operator of the server, with long values and
    amounts.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FUNCTIONS)
        functions = cursor.fetchall()
        cursor.execute(_OPERATORS)
        operators = cursor.fetchall()
    for name, types in functions:
        for arguments in itertools.chain(_combined(types), _with_amounts(types)):
            yield f'SELECT "{name}"({", ".join(arguments)})'
    for symbol, left, right in operators:
        operands = [one for one in (left, right) if one is not None]
        for arguments in _combined(operands):
            yield f"SELECT {' '.join([*arguments[:-1], symbol, arguments[-1]])}"


def _with_amounts(types: Sequence[str]) -> Iterator[list[str]]:
    """Yield short arguments of a function that takes numbers, with each amount for these."""
    if _NUMBER_TYPES.isdisjoint(types):
        return
    short = [_values(one, is_long=False)[0] for one in types]
    for amount in _AMOUNTS:
        arguments = []
        for type_name, value in zip(types, short, strict=True):
            arguments.append(amount if type_name in _NUMBER_TYPES else value)
        yield arguments


def other_calls() -> Iterator[str]:
    """Yield casts of long texts to types that read them, and syntax that is no call."""
    texts = LONG["text"]
    for name in (
        "json",
        "jsonb",
        "xml",
        "tsvector",
        "tsquery",
        "numeric",
        "text[]",
        "int4multirange",
    ):
        for text in (*texts, "repeat('9', 1000000)", "repeat('[', 500000)", "repeat('1 ', 500000)"):
            yield f"SELECT ({text})::{name}"
    many_keys = "('{' || (SELECT string_agg('\"' || t || '\": 1', ',') FROM long_values) || '}')"
    yield f"SELECT {many_keys}::jsonb"
    yield "SELECT ('<a ' || (SELECT string_agg(t || '=\"\"', ' ') FROM long_values) || '/>')::xml"
    for left, right in itertools.product(texts, repeat=2):
        for word in ("LIKE", "ILIKE", "NOT LIKE", "SIMILAR TO", "~", "~*", "=", "<", "IN"):
            yield f"SELECT {left} {word} ({right})"
        yield f"SELECT {left} LIKE ANY (ARRAY[{right}])"
        yield f"SELECT {left} LIKE '%' || {right} || '%'"
    for path in LONG["jsonpath"]:
        for document in LONG["jsonb"]:
            yield f"SELECT {document} @? {path}"
            yield f"SELECT {document} @@ {path}"
            yield f"SELECT json_query({document}, {path})"
    for text in texts:
        yield f"SELECT {text} LIKE ANY (string_to_array(repeat('%a%b,', 100000), ','))"
        yield f"SELECT 'a' LIKE ANY (string_to_array({text}, 'a'))"
        yield f"SELECT {text} LIKE '%a%b%a%b%a%c'"
        yield f"SELECT {text} ~ '(a*)*b(c*)*$'"
        yield f"SELECT regexp_matches({text}, '()()()()()()()()(a)', 'g')"
        yield f"SELECT normalize({text}), {text} IS NORMALIZED"


def _combined(types: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield all long at once, and each of them alone."""
    yield from itertools.islice(itertools.product(*(_values(t, is_long=True) for t in types)), 12)
    for place in range(len(types)) if len(types) > 1 else ():
        values = [_values(t, is_long=n == place) for n, t in enumerate(types)]
        if len(values[place]) and _SAME.get(types[place], types[place]) in LONG:
            yield from itertools.islice(itertools.product(*values), 3)


class Trial:
    """Runs statements on a server of one's own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection = self._open()

    def _open(self) -> "psycopg2.extensions.connection":
        deadline = time.monotonic() + 60
        while True:
            try:
                connection = psycopg2.connect(self._url)
                break
            except psycopg2.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(f"SET statement_timeout = {TIMEOUT_MS}")
        self.pid = connection.info.backend_pid
        return connection

    def run(self, sql: str, found: CallsFound) -> None:
        """Run the statement, and note whether it ended in time and what memory it took."""
        started = time.monotonic()
        watch = _killer(self.pid, TIMEOUT_MS / 1000 + _PATIENCE_S)
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(f"SELECT max(length(x::text)) FROM ({sql}) AS s (x)")
            found.ended += 1
        except psycopg2.Error as exc:
            if self._connection.closed:
                found.endless.append(sql)
                print("runs on:", sql, flush=True)
            elif exc.pgcode == "57014":
                found.ended += 1
            else:
                found.failed += 1
        finally:
            watch.cancel()
        seconds = time.monotonic() - started
        if seconds > 2 * TIMEOUT_MS / 1000:
            found.slowest.append((seconds, sql))
        self._look_at_memory(sql, found)

    def _look_at_memory(self, sql: str, found: CallsFound) -> None:
        megabytes = 0.0
        with suppress(OSError):
            status = Path(f"/proc/{self.pid}/status").read_text()
            line = next(field for field in status.splitlines() if field.startswith("VmHWM"))
            megabytes = int(line.split()[1]) / 1024
        if megabytes > _MOST_MB:
            found.large.append(f"{megabytes:.0f} MB {sql}")
            print(f"takes {megabytes:.0f} MB:", sql, flush=True)
        if megabytes > _MOST_MB / 2 or self._connection.closed:
            self._connection.close()
            self._connection = self._open()


def _killer(pid: int, seconds: float) -> "asyncio.TimerHandle":
    import threading

    timer = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
    timer.daemon = True
    timer.start()
    return timer  # type: ignore[return-value]


def run(url: str, *, part: int = 1) -> CallsFound:
    """Try every `part`th call."""
    connection = psycopg2.connect(url)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(TABLE)
    database = open_asked(url)
    asyncio.run(database.catalog())
    guard: Guard = database._guard
    found = CallsFound()
    trial = Trial(url)
    for sql in itertools.islice(itertools.chain(other_calls(), calls(connection)), 0, None, part):
        try:
            if guard.inspect(sql).growth.gathered_copies:
                asyncio.run(database.explain(sql))
        except StatementRejected:
            found.refused += 1
            continue
        trial.run(sql, found)
    return found


if __name__ == "__main__":
    for line in run(sys.argv[1]).lines():
        print(line)
