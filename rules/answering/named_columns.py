"""What the columns of a result are called, by the structure of the question where there is one."""

from dataclasses import replace
from datetime import date

from common.text import Lang
from common.values import QueryResult
from knowledge.result_columns import ResultColumn, result_columns
from rules.answering.compared import changes_of
from rules.answering.figure_names import computed_name, listed_name, top_name
from rules.query.functions import PARTS
from rules.query.query import Query
from rules.schema.schema import Schema


def columns_of(
    query: Query | None, sql: str, result: QueryResult, schema: Schema, lang: Lang, today: date | None = None
) -> tuple[ResultColumn, ...]:
    """What the columns are; what is computed is called by the structure that it comes from."""
    columns = result_columns(sql, result, schema.catalog, lang)
    if query is None or query.counts_rows:
        return columns
    if query.share_of_top is not None and len(columns) == 1:
        return (replace(columns[0], label=top_name(query, schema, lang), unit="%"),)
    changes = changes_of(query, len(columns), schema, lang, today or date.today())
    figures = len(columns) - len(query.measures) * (1 if changes is None else 4)  # the place of the first
    first = figures - len(query.columns)
    if first < 0:
        return columns
    parts = {PARTS[one.part].name: PARTS[one.part].label.to(lang) for one in query.dimensions if one.part is not None}
    labels = {place: parts.get(one.output.name) for place, one in enumerate(columns[:first])}
    labels |= {place: listed_name(one, schema, lang) for place, one in enumerate(query.columns, first)}
    units: dict[int, str | None] = {}
    if changes is not None:
        labels |= changes.labels(lang)
        units |= {one.difference: columns[one.after].unit for one in changes.figures}
        units |= dict.fromkeys((one.percent for one in changes.figures), "%")
    for place, measure in enumerate(query.measures if changes is None else (), figures):
        labels[place] = computed_name(measure, schema, lang)
        if measure.function == "metric":
            meaning = schema.column(measure.table, str(measure.column)).meaning
            units[place] = meaning.unit.to(lang) if meaning is not None and meaning.unit is not None else None
    return tuple(
        replace(one, label=labels.get(place) or one.label, unit=units.get(place, one.unit))
        for place, one in enumerate(columns)
    )
