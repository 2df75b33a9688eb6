"""Findings about a whole and its parts: shares, how few make most of it, and how concentrated it
is.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from agent.analysis.analysis_sql import PARETO
from agent.analysis.findings import Finding, figure, percent
from agent.analysis.subject import SubjectColumn
from common.text import Lang, Text

_TOLD = 3  # contributors that the sentence names
_LEAST_GROUPS = 3  # of which it is worth saying how few make most
_SHARES = Text("各组合计除以全部行的总计（SQL）", "each group's sum over the sum of all rows (SQL)")
_PARETO = Text(
    f"帕累托：按合计从大到小累加到总计的 {float(PARETO):.0%}（SQL 窗口函数）",
    f"Pareto: sums added up from the greatest until they reach {float(PARETO):.0%} of the total "
    f"(SQL window functions)",
)
_HERFINDAHL = Text(
    "赫芬达尔指数（各组占比的平方和；1 为全部集中于一组，1/组数 为完全平均）",
    "Herfindahl index: the sum of the squared shares (1: all in one group; 1/groups: all alike)",
)
_NEGATIVE = Text(
    "“{name}”有负数或总计为 0，不能算占比。",
    "{name} has negative sums, or a total of 0: no shares of it can be formed.",
)


def share_findings(
    measure: SubjectColumn,
    group: SubjectColumn,
    rows: Sequence[Sequence[Any]],
    sql: str,
    lang: Lang,
) -> list[Finding] | Text:
    """Return findings from the rows of `statements.shares`; a notice when the parts make no
    whole.
    """
    if not rows:
        return []

    _, _, _, groups, total, least, enough, concentration = rows[0]
    if least < 0 or total <= 0:
        return Text(
            _NEGATIVE.zh.format(name=measure.label), _NEGATIVE.en.format(name=measure.label)
        )

    return list(_findings(measure, group, rows, sql, lang))


def _findings(
    measure: SubjectColumn,
    group: SubjectColumn,
    rows: Sequence[Sequence[Any]],
    sql: str,
    lang: Lang,
) -> Iterator[Finding]:
    _, _, _, groups, total, _, enough, concentration = rows[0]
    of = {"measure": measure.name, "by": group.name, "groups": groups, "total": total}
    top = [
        {"name": _name(name, lang), "value": value, "share": value / total}
        for name, value, *_ in rows
    ]
    rest = max(0, 1 - sum(group_share["share"] for group_share in top)) if groups > len(top) else 0
    total_text = figure(total, measure.column.unit, lang)
    names = [
        f"{group.said(group_share['name'], lang)} {percent(group_share['share'])}"
        for group_share in top[:_TOLD]
    ]
    noun = "group" if groups == 1 else "groups"
    text = Text(
        f"“{measure.label}”总计 {total_text}，按“{group.label}”分为 {groups:,} 组，"
        f"占比最高的是{'、'.join(names)}。",
        f"{measure.label} adds up to {total_text} in {groups:,} {noun} by {group.label}; "
        f"the largest shares: {', '.join(names)}.",
    )
    yield Finding("shares", text.to(lang), _SHARES.to(lang), {**of, "top": top, "rest": rest}, sql)
    if groups < _LEAST_GROUPS:
        return

    part = percent(enough / groups)
    text = Text(
        f"{groups:,} 组中的 {enough:,} 组（{part}）占“{measure.label}”总计的 {float(PARETO):.0%}。",
        f"{enough:,} of the {groups:,} groups ({part}) make {float(PARETO):.0%} of "
        f"{measure.label}.",
    )
    figures = {**of, "groups_for_80_percent": enough, "part_of_groups": enough / groups}
    yield Finding("pareto", text.to(lang), _PARETO.to(lang), figures, sql)
    index = float(concentration)
    text = Text(
        f"“{measure.label}”的集中度（赫芬达尔指数）为 {index:.3f}，相当于 {1 / index:,.1f} "
        f"个同样大小的组。",
        f"The concentration (Herfindahl index) of {measure.label} is {index:.3f}, as of "
        f"{1 / index:,.1f} equal groups.",
    )
    figures = {**of, "herfindahl": index, "equal_groups": 1 / index}
    yield Finding("concentration", text.to(lang), _HERFINDAHL.to(lang), figures, sql)


def _name(name: str | None, lang: Lang) -> str:
    if name is not None:
        return name

    return Text("（空）", "(none)").to(lang)
