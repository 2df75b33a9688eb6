"""Says of which rows a figure is: the period and the conditions of its query, in people's words."""

from datetime import date

from common.text import Lang, Text
from common.values import Catalog, Column
from knowledge.language.spoken_names import spoken_name
from knowledge.results.reference_names import column_name
from knowledge.results.value_labels import labels_of_column
from rules.answering.answer_period import period_of_sql
from sqltree.column_conditions import ColumnCondition, restriction_of

_MOST_SAID = 6
_MOST_VALUES = 5
_MOST_CHARS = 60  # of one value
_JOINED = Text("、", " or ")
_WRITTEN = {
    "=": Text("{column}为{values}", "{column} is {values}"),
    "<>": Text("{column}不为{values}", "{column} is not {values}"),
    "<": Text("{column}小于{values}", "{column} below {values}"),
    "<=": Text("{column}不超过{values}", "{column} at most {values}"),
    ">": Text("{column}大于{values}", "{column} above {values}"),
    ">=": Text("{column}不低于{values}", "{column} at least {values}"),
    "like": Text("{column}匹配{values}", "{column} like {values}"),
    "is null": Text("{column}为空", "{column} is empty"),
    "is not null": Text("{column}不为空", "{column} is not empty"),
}
_SIGNS = {
    "=": "{column} = {values}",
    "<>": "{column} ≠ {values}",
    "<": "{column} < {values}",
    "<=": "{column} ≤ {values}",
    ">": "{column} > {values}",
    ">=": "{column} ≥ {values}",
}
_FLAGS = {
    ("=", "true"): Text("{column}：是", "{column}: yes"),
    ("=", "false"): Text("{column}：否", "{column}: no"),
    ("<>", "true"): Text("{column}：否", "{column}: no"),
    ("<>", "false"): Text("{column}：是", "{column}: yes"),
}
_DATED = Text("{} {}", "{} {}")
_BLANK = "“{}”"
_OTHERS = Text("其他条件见 SQL", "and what else the SQL says")


def condition_texts(sql: str, catalog: Catalog, lang: Lang, today: date) -> list[str]:
    """Return the period and each condition of the WHERE; the last text says if there is more."""
    restriction = restriction_of(sql, catalog)
    dated = period_of_sql(sql, catalog, today)
    texts = [_condition_text(condition, catalog, lang) for condition in restriction.plain]
    if dated is not None:
        period = dated.written_period(lang)
        texts.insert(0, _DATED.to(lang).format(spoken_name(dated.column, lang), period))

    texts = list(dict.fromkeys(texts))  # several tables may have the same one
    has_unread_times = restriction.of_times > 0 and dated is None
    is_whole = restriction.others == 0 and not has_unread_times
    if is_whole and len(texts) <= _MOST_SAID:
        return texts

    return [*texts[:_MOST_SAID], _OTHERS.to(lang)]


def _condition_text(condition: ColumnCondition, catalog: Catalog, lang: Lang) -> str:
    column = column_name(condition.column, condition.table, catalog, lang)
    if condition.column.type == "boolean" and len(condition.values) == 1:
        flag = _FLAGS.get((condition.operator, condition.values[0]))
        if flag is not None:
            return flag.to(lang).format(column=column)

    values = [_named(value, condition.column, lang) for value in condition.values[:_MOST_VALUES]]
    if len(condition.values) > _MOST_VALUES:
        values.append("…")

    text = _WRITTEN[condition.operator].to(lang)
    is_named_otherwise = lang == "zh" and column.isascii()
    if is_named_otherwise:  # signs suit a name in Latin letters better than Chinese words
        text = _SIGNS.get(condition.operator, text)

    return text.format(column=column, values=_JOINED.to(lang).join(values))


def _named(value: str, column: Column, lang: Lang) -> str:
    """Return what people call the stored value; the value itself where they call it nothing."""
    label = labels_of_column(column, lang).get(value)
    if label is not None:
        return label

    if not value.strip():
        return _BLANK.format(value)

    if len(value) <= _MOST_CHARS:
        return value

    return f"{value[:_MOST_CHARS]}…"
