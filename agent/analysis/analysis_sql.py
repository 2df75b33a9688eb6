"""The SQL of an analysis, written around the answer's own statement, whose LIMIT stays a part of
it.

Columns go by their places (`c1`, `c2` …), so that no name has to be quoted and names may occur
twice. Measures are called `v1`, `v2` …; they are numeric, and NULL where they are NaN, infinite or
too large for any sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.analysis.analysis_limits import MOST_NAME_CHARS, MOST_NAMED
from agent.analysis.series_periods import ALIGNED
from agent.analysis.subject import SubjectColumn
from common.values import PeriodUnit

PARETO = "0.8"
"""The part of the total that the Pareto count reaches."""
IQR_FENCE = "1.5"
"""How many interquartile ranges from the quartiles an outlier lies at least."""

# NaN is greater than every number in PostgreSQL, so that this leaves it out as well. Quartiles are
# float8, which has no smaller numbers than these few: they count as zero.
_FIGURE = (
    "CASE WHEN {value} BETWEEN -1e-300 AND 1e-300 THEN 0 WHEN {value} BETWEEN -1e300 AND 1e300 "
    "THEN {value}::numeric "
    "END AS v{number}"
)
# A correlation multiplies the squares of its figures, which are float8 and overflow when these are
# greater.
_MULTIPLIED = (
    "(CASE WHEN abs({value}) < 1e-70 THEN 0 WHEN abs({value}) <= 1e70 THEN {value} END)::float8"
)
_ARE_MULTIPLIED = "greatest(max(abs({one})), max(abs({other}))) <= 1e70"
_QUARTILE = "percentile_cont({part}) WITHIN GROUP (ORDER BY {value})"


@dataclass(frozen=True)
class AnalysedRows:
    """The answer's rows.

    Attributes:
        statement: without a semicolon at its end.
        columns: how many it has.
    """

    statement: str
    columns: int

    def figures(self, *measures: SubjectColumn) -> str:
        """Return a FROM item with all columns and the figures of these measures."""
        names = ", ".join(f"c{number}" for number in range(1, self.columns + 1))
        listed = "".join(f", {_figure(measure)}" for measure in measures)
        return f"(SELECT r.*{listed} FROM (\n{self.statement}\n) AS r ({names})) AS f"


def _figure(measure: SubjectColumn) -> str:
    value = f"c{measure.number}::numeric" if measure.type == "money" else f"c{measure.number}"
    return _FIGURE.format(value=value, number=measure.number)


def described(
    rows: AnalysedRows,
    measures: Sequence[SubjectColumn],
    pairs: Sequence[tuple[SubjectColumn, SubjectColumn]],
) -> str:
    """Return one row: the number of rows; per measure its facts in the order of `describing.FACTS`;
    per pair n and r.

    r is NULL where a figure is too great for it: that of the others would be another.
    """
    parts = ["count(*)"]
    for measure in measures:
        value = f"v{measure.number}"
        parts += [f"count(c{measure.number})", f"count({value})"]
        parts += [
            f"{function}({value})" for function in ("sum", "avg", "stddev_samp", "min", "max")
        ]
        parts += [_QUARTILE.format(part=part, value=value) for part in ("0.25", "0.5", "0.75")]

    for one, other in pairs:
        parts += _correlated(f"v{one.number}", f"v{other.number}")

    return f"SELECT {', '.join(parts)} FROM {rows.figures(*measures)}"


def _correlated(one: str, other: str) -> list[str]:
    arguments = ", ".join(_MULTIPLIED.format(value=value) for value in (one, other))
    r = f"CASE WHEN {_ARE_MULTIPLIED.format(one=one, other=other)} THEN corr({arguments}) END"
    return [f"regr_count({arguments})", r]


def shares(rows: AnalysedRows, measure: SubjectColumn, group: SubjectColumn) -> str:
    """Return the groups with the greatest figures, each with what is known of all groups.

    Rows: name, figure, place; then of all groups how many, their sum, their least figure, how many
    reach `PARETO` of the sum, and the sum of their squared shares.
    """
    grouped = (
        f"SELECT c{group.number} AS g, sum(v{measure.number}) AS v FROM {rows.figures(measure)} "
        f"GROUP BY 1 HAVING count(v{measure.number}) > 0"
    )
    ordered = (
        f"SELECT left(g::text, {MOST_NAME_CHARS}) AS g, v, row_number() OVER o AS place, sum(v) "
        f"OVER o AS reached, "
        f"sum(v) OVER () AS total FROM ({grouped}) AS t WINDOW o AS (ORDER BY v DESC, g::text)"
    )
    whole = (
        "SELECT g, v, place, count(*) OVER () AS groups, total, min(v) OVER () AS least, "
        f"count(*) FILTER (WHERE reached - v < {PARETO} * total) OVER () AS enough, "
        f"sum((v / nullif(total, 0)) ^ 2) OVER () AS concentration FROM ({ordered}) AS s"
    )
    return f"SELECT * FROM ({whole}) AS w WHERE place <= {MOST_NAMED} ORDER BY place"


def grain(rows: AnalysedRows, time: SubjectColumn) -> str:
    """Return one row: how many times there are, the first and the last, and per unit whether all
    are beginnings of one.
    """
    aligned = ", ".join(f"bool_and(t = date_trunc('{unit}', t))" for unit in ALIGNED)
    return (
        f"SELECT count(t), min(t), max(t), {aligned} FROM "
        f"(SELECT c{time.number}::timestamp AS t FROM {rows.figures()} WHERE "
        f"isfinite(c{time.number})) AS s"
    )


def period(time: SubjectColumn, unit: PeriodUnit | None) -> str:
    """Return the period that a row belongs to."""
    if time.is_timestamp:
        return f"date_trunc('{unit}', c{time.number}::timestamp)"

    return f"c{time.number}::text"


def series(
    rows: AnalysedRows, measure: SubjectColumn, time: SubjectColumn, unit: PeriodUnit | None
) -> str:
    """Return a row per period: its time, rows, figures and their sum; and the server's clock."""
    when = f"isfinite(c{time.number})" if time.is_timestamp else f"c{time.number} IS NOT NULL"
    value = f"v{measure.number}"
    return (
        f"SELECT {period(time, unit)}, count(*), count({value}), sum({value}), LOCALTIMESTAMP "
        f"FROM {rows.figures(measure)} WHERE {when} GROUP BY 1 ORDER BY 1"
    )


def contributions(
    rows: AnalysedRows,
    measure: SubjectColumn,
    group: SubjectColumn,
    *,
    period: str,
    last: str,
    before: str,
) -> str:
    """Return a row per group, those that changed most first: name, figure in the last period, and
    in the one before.

    Args:
        period: an expression for a row's period.
        last, before: literals of the two periods.
    """
    value = f"v{measure.number}"
    grouped = (
        f"SELECT c{group.number} AS g, coalesce(sum({value}) FILTER (WHERE {period} = {last}), "
        f"0) AS a, "
        f"coalesce(sum({value}) FILTER (WHERE {period} = {before}), 0) AS b "
        f"FROM {rows.figures(measure)} WHERE {period} IN ({last}, {before}) GROUP BY 1"
    )
    return (
        f"SELECT left(g::text, {MOST_NAME_CHARS}), a, b FROM ({grouped}) AS t "
        f"ORDER BY abs(a - b) DESC, g::text LIMIT {MOST_NAMED}"
    )


def outliers(rows: AnalysedRows, measure: SubjectColumn, names: Sequence[SubjectColumn]) -> str:
    """Return the figures that lie outside the fences, the farthest first; one row without a figure
    when there are none.

    Rows: the figure, its names; then of all figures how many, the quartiles, and how many lie
    outside.
    """
    value = f"v{measure.number}"
    listed = ", ".join(f"c{name.number}" for name in names)
    first, last = (_QUARTILE.format(part=part, value=value) for part in ("0.25", "0.75"))
    low, high = (
        f"{side} {quartile} {sign} {IQR_FENCE} * (q3 - q1)"
        for side, quartile, sign in (("v <", "q1", "-"), ("v >", "q3", "+"))
    )
    name_columns = "".join(f", left(o.c{name.number}::text, {MOST_NAME_CHARS})" for name in names)
    return (
        f"WITH f AS MATERIALIZED (SELECT {value} AS v{', ' + listed if listed else ''} FROM "
        f"{rows.figures(measure)}), "
        f"q AS (SELECT count(v) AS n, {first.replace(value, 'v')} AS q1, "
        f"{last.replace(value, 'v')} AS q3 FROM f) "
        f"SELECT o.v{name_columns}, q.n, q.q1, q.q3, count(o.v) OVER () "
        f"FROM q LEFT JOIN f AS o ON {low} OR {high} "
        f"ORDER BY greatest(q1 - o.v, o.v - q3) DESC NULLS LAST LIMIT {MOST_NAMED}"
    )
