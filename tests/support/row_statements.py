"""Random statements over the tables of the row rules' tests. Each gives a number and a text, so
that they combine.
"""

from dataclasses import dataclass

from hypothesis import strategies as st

Draw = st.DrawFn
_DEPTH = 2


@dataclass(frozen=True)
class Source:
    """A thing to read from: how it is written, and its columns of numbers and of texts as a query
    calls them.
    """

    sql: str
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    row: str | None = None


_TABLES = {
    # Casts of the last number fail on hidden rows alone.
    "orders": (
        ("id", "customer_id", "parent_id", "note::int", "1 / (id - 1)"),
        ("tenant", "note", "phone"),
    ),
    "public.orders": (("id", "customer_id", "note::int"), ("tenant", "note")),
    "archive.orders": (("id",), ("tenant", "note")),
    "customer": (("id", "salary", "salary::smallint::int"), ("tenant", "name", '"Display Name"')),
    "line": (("order_id", "no", "quantity"), ("code", "remark")),
    "event": (("n",), ("tenant", "kind")),
    "event_2024": (("n",), ("tenant", "kind")),
    "animal": ((), ("name", "tenant")),
    "dog": ((), ("name", "tenant", "breed")),
    '"Mixed Case"': (('"Id"',), ('"select"', '"quo""ted"', "tenant", "名称")),
    "product": ((), ("code", "title")),
    "membership": ((), ("user_id", "tenant")),
}
_NAMES = ("orders", "customer", "line", "membership", "m", "ruled_row", "x")
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN")


@st.composite
def queries(draw: Draw) -> str:
    """Return a whole statement."""
    ctes = draw(st.lists(st.sampled_from(_NAMES), max_size=2, unique=True))
    known: list[str] = []
    parts = []
    for name in ctes:
        parts.append(f"{name} AS ({draw(_selects(tuple(known), (), _DEPTH - 1))})")
        known.append(name)
    body = draw(_selects(tuple(known), (), _DEPTH))
    if draw(st.booleans()):
        body = (
            f"{body} {draw(st.sampled_from(('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT ALL')))} "
            + draw(_selects(tuple(known), (), 1))
        )
    if draw(st.booleans()):
        body = f"{body} ORDER BY 1, 2 LIMIT 4"
    return (f"WITH {', '.join(parts)} " if parts else "") + body


@st.composite
def _selects(draw: Draw, ctes: tuple[str, ...], outer: tuple[Source, ...], depth: int) -> str:
    """Return a SELECT of a number n and a text s; `outer` may be referred to."""
    sources = [
        draw(_sources(ctes, depth, place, len(outer)))
        for place in range(draw(st.integers(1, 2 if depth else 1)))
    ]
    seen = (*sources, *outer)
    text = sources[0].sql
    for place, source in enumerate(sources[1:], 1):
        join = draw(st.sampled_from(_JOINS))
        condition = (
            "" if join == "CROSS JOIN" else f" ON {draw(_equalities(tuple(sources[: place + 1])))}"
        )
        text = f"{text} {join} {source.sql}{condition}"
    where = f" WHERE {draw(_conditions(ctes, seen, depth))}" if draw(st.booleans()) else ""
    number, word = draw(_numbers(ctes, seen, depth)), draw(_texts(seen))
    if draw(st.integers(0, 3)) == 0:
        figure = draw(
            st.sampled_from(
                ("count(*)::int", f"max({number})", f"sum({number})::int", f"count({word})::int")
            )
        )
        own = draw(_texts(tuple(sources)))
        return f"SELECT {figure} AS n, {own} AS s FROM {text}{where} GROUP BY 2"
    if draw(st.integers(0, 5)) == 0:
        return (
            f"SELECT (count(*) OVER (PARTITION BY {word}))::int AS n, {word} AS s "
            f"FROM {text}{where}"
        )
    distinct = draw(st.sampled_from(("", "", "DISTINCT ")))
    return f"SELECT {distinct}{number} AS n, {word} AS s FROM {text}{where}"


@st.composite
def _sources(draw: Draw, ctes: tuple[str, ...], depth: int, place: int, level: int) -> Source:
    alias = f"t{level}{place}"
    kind = draw(st.integers(0, 6))
    if kind == 0 and depth:
        return Source(
            f"({draw(_selects(ctes, (), depth - 1))}) AS {alias}",
            (f"{alias}.n",),
            (f"{alias}.s",),
            alias,
        )
    if kind == 1 and ctes:
        return Source(
            f"{draw(st.sampled_from(ctes))} AS {alias}", (f"{alias}.n",), (f"{alias}.s",), alias
        )
    names = [name for name in _TABLES if name not in ctes]
    table = draw(st.sampled_from(names))
    numbers, texts = _TABLES[table]
    only = draw(st.sampled_from(("", "", "", "ONLY ")))
    sample = draw(st.sampled_from(("", "", "", " TABLESAMPLE system (100)")))
    return Source(
        f"{only}{table} AS {alias}{sample}",
        tuple(_qualified(number, alias) for number in numbers),
        tuple(f"{alias}.{text}" for text in texts),
        alias,
    )


def _qualified(number: str, alias: str) -> str:
    return f"1 / ({alias}.id - 1)" if number.startswith("1 /") else f"{alias}.{number}"


@st.composite
def _equalities(draw: Draw, sources: tuple[Source, ...]) -> str:
    one, other = draw(_texts(sources[-1:])), draw(_texts(sources[:-1]))
    return draw(
        st.sampled_from((f"{one} = {other}", f"{one} = {other} AND {one} IS NOT NULL", "true"))
    )


def _texts(sources: tuple[Source, ...]) -> st.SearchStrategy[str]:
    columns = [text for source in sources for text in source.texts]
    rows = [f"{source.row}::text" for source in sources if source.row]
    return st.sampled_from([*columns * 3, *rows, *(f"upper({text})" for text in columns[:1])])


@st.composite
def _numbers(draw: Draw, ctes: tuple[str, ...], sources: tuple[Source, ...], depth: int) -> str:
    columns = [number for source in sources for number in source.numbers]
    kind = draw(st.integers(0, 4))
    if kind == 0 and depth:
        return f"(SELECT count(*)::int FROM ({draw(_selects(ctes, sources, depth - 1))}) q)"
    if kind == 1 and depth:
        return f"(SELECT max(n) FROM ({draw(_selects(ctes, sources, depth - 1))}) q)"
    return draw(st.sampled_from([*columns, "7", f"length({draw(_texts(sources))})"]))


@st.composite
def _conditions(draw: Draw, ctes: tuple[str, ...], sources: tuple[Source, ...], depth: int) -> str:
    kind = draw(st.integers(0, 7))
    number, text = draw(_numbers(ctes, sources, 0)), draw(_texts(sources))
    if kind == 0 and depth:
        return (
            f"{draw(st.sampled_from(('', 'NOT ')))}EXISTS "
            f"({draw(_selects(ctes, sources, depth - 1))})"
        )
    if kind == 1 and depth:
        return f"({number}, {text}) IN ({draw(_selects(ctes, sources, depth - 1))})"
    if kind == 2 and depth:
        return (
            f"{number} > ALL (SELECT n FROM ({draw(_selects(ctes, sources, depth - 1))}) q "
            "WHERE n IS NOT NULL)"
        )
    if kind == 3:
        return f"{text} LIKE '%{draw(st.sampled_from(('S', 'a', '0')))}%' OR {number} > 11"
    if kind == 4:
        return f"NOT ({number} > {draw(st.integers(0, 700))}) OR {text} IS NULL"
    return draw(
        st.sampled_from(
            (f"{number} > 10", f"{text} <> 'a'", f"{number} IS NOT NULL AND {text} < 'x'", "true")
        )
    )
