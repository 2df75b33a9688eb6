"""Findings about figures as such: how many, how much, how they are spread, and how two of them go
together.
"""

from collections.abc import Sequence
from typing import Any

from agent.analysis.analysis_sql import IQR_FENCE
from agent.analysis.findings import Finding, figure, filled
from agent.analysis.subject import SubjectColumn
from common.text import Lang, Text

FACTS = ("stored", "count", "sum", "mean", "standard_deviation", "min", "max", "q1", "median", "q3")
_LEAST_PAIRS = 8  # a correlation of fewer says little
_LEAST_SPREAD = 8  # figures whose quartiles tell what is unusual
_STRENGTHS: tuple[tuple[float, Text], ...] = (
    (0.8, Text("很强", "very strong")),
    (0.6, Text("强", "strong")),
    (0.4, Text("中等", "moderate")),
    (0.2, Text("弱", "weak")),
    (0.0, Text("几乎没有", "hardly any")),
)
_BY_SQL = Text(
    "SQL 聚合，针对结果的全部行；中位数和四分位数为 percentile_cont（线性插值），"
    "标准差为样本标准差",
    "SQL aggregates over all rows of the result; median and quartiles by percentile_cont (linear "
    "interpolation), "
    "standard deviation of a sample",
)
_PEARSON = Text(
    "皮尔逊相关系数 r（SQL 的 corr，只用两者都有数值的行）",
    "Pearson's correlation coefficient r (corr in SQL, over rows that have both figures)",
)
_IQR = Text(
    f"四分位距（IQR）规则：低于 Q1 − {IQR_FENCE}×IQR 或高于 Q3 + {IQR_FENCE}×IQR",
    f"interquartile range (IQR) rule: below Q1 − {IQR_FENCE}×IQR or above Q3 + {IQR_FENCE}×IQR",
)
_NO_SPREAD = Text(
    "“{name}”中间一半的数值完全相同，IQR 为 0，规则无法判断离群值。",
    "Half of the figures of {name} are the same, so that the IQR is 0 and the rule tells no "
    "outliers.",
)
_TOO_FEW = Text(
    "“{name}”只有 {n} 个数值（至少需要 {least} 个），不判断离群值。",
    "{name} has too few figures ({n}) to tell outliers; that takes {least}.",
)


def facts_of(cells: Sequence[Any]) -> dict[str, Any]:
    """Return what `described` gives of one measure, by name, with the number of its NULLs and of
    its values that are no figures.
    """
    facts = dict(zip(FACTS, cells, strict=True))
    return facts | {"not_finite": facts["stored"] - facts["count"]}


def describe(
    measure: SubjectColumn, rows: int, facts: dict[str, Any], sql: str, lang: Lang
) -> Finding:
    """Return the measure's figures in one view."""
    figures_text = {
        name: facts[name]
        for name in FACTS
        if name != "stored" and (name != "sum" or measure.adds_up)
    }
    figures = {
        "measure": measure.name,
        "rows": rows,
        "nulls": rows - facts["stored"],
        "not_finite": facts["not_finite"],
        **figures_text,
    }
    return Finding(
        "describe", _summary_text(measure, figures, lang), _BY_SQL.to(lang), figures, sql
    )


def _summary_text(measure: SubjectColumn, facts: dict[str, Any], lang: Lang) -> str:
    def said(name: str) -> str:
        return figure(facts[name], measure.column.unit, lang)

    name, count = measure.label, facts["count"]
    if count == 0:
        return Text(f"“{name}”没有任何数值。", f"{name} has no figures.").to(lang)

    total = (
        Text(f"合计 {said('sum')}，", f"sum {said('sum')}, ") if "sum" in facts else Text("", "")
    )
    empty = facts["nulls"] + facts["not_finite"]
    left_out = (
        Text(f"另有 {empty:,} 行为空或不是有限数。", f" Rows without a figure: {empty:,}.")
        if empty
        else Text("", "")
    )
    return Text(
        f"“{name}”：{count:,} 个数值，{total.zh}平均 {said('mean')}，中位数 {said('median')}，"
        f"最低 {said('min')}，最高 {said('max')}，中间一半在 {said('q1')} 到 {said('q3')} 之间。"
        f"{left_out.zh}",
        f"{name}: {count:,} {'figure' if count == 1 else 'figures'}, {total.en}mean "
        f"{said('mean')}, "
        f"median {said('median')}, lowest {said('min')}, highest {said('max')}; the middle half "
        f"lies between "
        f"{said('q1')} and {said('q3')}.{left_out.en}",
    ).to(lang)


def correlation(
    one: SubjectColumn, other: SubjectColumn, count: int, r: float | None, sql: str, lang: Lang
) -> Finding | None:
    """Correlate two measures; None when there are too few rows, or one of them does not vary."""
    if r is None or count < _LEAST_PAIRS:
        return None

    strength = next(text for least, text in _STRENGTHS if abs(r) >= least)
    direction = (
        Text("同向", "in the same direction") if r >= 0 else Text("反向", "in opposite directions")
    )
    text = Text(
        f"“{one.label}”与“{other.label}”{direction.zh}变化，相关性{strength.zh}（r = {r:.2f}，"
        f"{count:,} 行）；"
        "相关不说明谁影响谁。",
        f"{one.label} and {other.label} go {direction.en}, the correlation is {strength.en} "
        f"(r = {r:.2f}, {count:,} rows); this does not say that one causes the other.",
    )
    figures = {"measures": [one.name, other.name], "n": count, "r": r}
    return Finding("correlation", text.to(lang), _PEARSON.to(lang), figures, sql)


def outlier_finding(
    measure: SubjectColumn,
    names: Sequence[SubjectColumn],
    rows: Sequence[Sequence[Any]],
    sql: str,
    lang: Lang,
) -> Finding | Text:
    """Return the figures far from the others, by the rows' names; a notice when the rule can't
    tell.
    """
    *_, count, q1, q3, outside = rows[0]
    if count < _LEAST_SPREAD:
        return filled(_TOO_FEW, name=measure.label, n=count, least=_LEAST_SPREAD)
    if q1 == q3:
        return filled(_NO_SPREAD, name=measure.label)

    fence = float(IQR_FENCE) * (q3 - q1)
    low, high = q1 - fence, q3 + fence
    outliers = [
        {"value": row[0], "row": _said_names(names, row[1:-4], lang)} for row in rows if outside
    ]
    figures = {
        "measure": measure.name,
        "n": count,
        "outliers": outside,
        "low_fence": low,
        "high_fence": high,
        "farthest": outliers,
    }
    unit = measure.column.unit
    fences = [figure(edge, unit, lang) for edge in (low, high)]
    if not outside:
        text = Text(
            f"“{measure.label}”的 {count:,} 个数值中没有离群值（范围 {fences[0]} 到 {fences[1]}）"
            f"。",
            f"None of the {count:,} figures of {measure.label} is an outlier (outside "
            f"{fences[0]} to {fences[1]}).",
        )
        return Finding("outliers", text.to(lang), _IQR.to(lang), figures, sql)

    examples = [
        _with_row_name(one["row"], figure(one["value"], unit, lang), lang) for one in outliers[:3]
    ]
    more = Text("等", " and others") if outside > len(examples) else Text("", "")
    text = Text(
        f"“{measure.label}”的 {count:,} 个数值中有 {outside:,} 个离群值（范围 {fences[0]} 到 "
        f"{fences[1]} 之外）："
        f"{'、'.join(examples)}{more.zh}。",
        f"{outside:,} of the {count:,} figures of {measure.label} "
        f"{'is an outlier' if outside == 1 else 'are outliers'} (outside {fences[0]} to "
        f"{fences[1]}): "
        f"{', '.join(examples)}{more.en}.",
    )
    return Finding("outliers", text.to(lang), _IQR.to(lang), figures, sql)


def _said_names(
    names: Sequence[SubjectColumn], cells: Sequence[str | None], lang: Lang
) -> list[str]:
    named = zip(names, cells, strict=True)
    return [name.said(cell, lang) for name, cell in named if cell is not None]


def _with_row_name(row: Sequence[str], value: str, lang: Lang) -> str:
    if row:
        return Text(f"{' '.join(row)}（{value}）", f"{' '.join(row)} ({value})").to(lang)

    return value
