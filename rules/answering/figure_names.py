"""What figures and listed columns are called, by what is asked for."""

from common.text import Lang, Text
from databases.outputs import Aggregate, Output
from knowledge.naming import plural, spoken_name
from knowledge.result_columns import label_of
from rules.query.functions import FUNCTIONS, PARTS
from rules.query.query import ColumnRef, Function, Measure, Query
from rules.schema.schema import Schema
from rules.sql.identifiers import number

_YEARS, _PART = Text("{}至今的年数", "years since {}"), Text("{}（{}）", "{} ({})")
_COUNTED, _SHARE, _PER = (
    Text("{}数量", "number of {}"),
    Text("{}占比", "share of {}"),
    Text("每组{}的平均", "average {}"),
)
_RUNNING, _RUNNING_SHARE = Text("累计{}", "running {}"), Text("{}累计占比", "running share of {}")
_TOP = Text("前{}名的{}占比", "share of the top {} in {}")
# Functions by what the columns of a result are said to be, whoever has written the SQL.
_TOLD: dict[Function, Aggregate] = {
    "count": "count", "count_distinct": "count", "sum": "sum", "avg": "avg", "min": "min", "max": "max",
}  # fmt: skip


def listed_name(asked: ColumnRef, schema: Schema, lang: Lang) -> str | None:
    """The name of a listed column; None for what is stored."""
    name = spoken_name(schema.column(asked.table, asked.column), lang)
    if asked.part is not None:
        return _PART.to(lang).format(name, PARTS[asked.part].label.to(lang))
    return _YEARS.to(lang).format(name) if asked.is_age else None


def computed_name(measure: Measure, schema: Schema, lang: Lang) -> str | None:
    """The name of what the SQL alone does not tell; None for the rest."""
    if measure.function == "metric":
        return spoken_name(schema.column(measure.table, str(measure.column)), lang)
    name = _of(measure, schema, lang)
    if measure.is_running:
        return (_RUNNING_SHARE if measure.is_share else _RUNNING).to(lang).format(name)
    if measure.is_share:
        return _SHARE.to(lang).format(name)
    if measure.per is not None:
        return _PER.to(lang).format(name)
    if not (measure.times or measure.is_age) and measure.function in _TOLD:
        return None
    label = FUNCTIONS[measure.function].label.to(lang)
    percent = number(measure.percent) if measure.percent is not None else ""
    return name if measure.function.startswith("count") else label.replace("{percent}", percent).replace("{}", name)


def top_name(query: Query, schema: Schema, lang: Lang) -> str:
    """The name of how much the first groups have."""
    return _TOP.to(lang).format(query.share_of_top, _of(query.measures[0], schema, lang))


def figure_name(measure: Measure, schema: Schema, lang: Lang) -> str:
    """The name of a figure."""
    name = computed_name(measure, schema, lang)
    if name is not None:
        return name
    table, function = schema.table(measure.table), _TOLD[measure.function]
    if measure.column is None:
        return label_of(Output("", function=function, counted=(table,)), None, lang)
    column = schema.column(measure.table, measure.column)
    return label_of(Output("", table=table, column=column, function=function), None, lang)


def _of(measure: Measure, schema: Schema, lang: Lang) -> str:
    """What the function is of; of a count, what is counted."""
    if measure.function in ("count", "count_distinct"):
        thing = schema.table(measure.table) if measure.column is None else schema.column(measure.table, measure.column)
        name = spoken_name(thing, lang)
        return _COUNTED.to(lang).format(plural(name) if lang == "en" else name)
    factors = [one for one in (measure.column, measure.times) if one is not None]
    name = " × ".join(spoken_name(schema.column(measure.table, one), lang) for one in factors)
    return _YEARS.to(lang).format(name) if measure.is_age else name
