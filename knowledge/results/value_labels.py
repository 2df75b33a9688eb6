"""What readers call the stored values of a column: codes that its comment or the semantic file
explains.
"""

import re
from collections.abc import Mapping

from common.text import Lang, Text
from common.values import Column
from knowledge.language.codes import labels_of
from knowledge.language.cutting import has_han
from sqltree.outputs import OutputColumn

_WORD = re.compile(r"[A-Za-z]{3}")
_WEEKDAYS = (
    Text("周日", "Sunday"),
    Text("周一", "Monday"),
    Text("周二", "Tuesday"),
    Text("周三", "Wednesday"),
    Text("周四", "Thursday"),
    Text("周五", "Friday"),
    Text("周六", "Saturday"),
    Text("周日", "Sunday"),
)
WEEKEND = "is_weekend"
"""The name of a column that tells weekends from other days."""
_WEEKEND, _OTHER_DAYS = Text("周末", "weekend"), Text("周一至周五", "weekday")
_NUMBERED = {"dow": range(7), "isodow": range(1, 8)}


def value_labels(output: OutputColumn, lang: Lang) -> Mapping[str, str]:
    """Return the labels of the values that a column of a result shows; empty where they are not
    those that are stored.

    The numbers of weekdays have their names, and so have weekends.
    """
    if output.part in _NUMBERED and not output.function and not output.is_computed:
        return weekdays(output.part, lang)
    if output.name == WEEKEND and not output.is_stored:
        return _weekends(lang)
    if output.column is None or not output.is_stored:
        return {}

    return labels_of_column(output.column, lang)


def _weekends(lang: Lang) -> dict[str, str]:
    """Return the names of weekends and other days, by their texts in Python and in JSON."""
    named: dict[str, str] = {}
    for is_weekend, days in ((True, _WEEKEND), (False, _OTHER_DAYS)):
        text = str(is_weekend)
        named |= {text: days.to(lang), text.lower(): days.to(lang)}

    return named


def weekdays(part: str, lang: Lang) -> dict[str, str]:
    """Return the names of weekdays by their numbers, as PostgreSQL writes these for that part."""
    named: dict[str, str] = {}
    for number in _NUMBERED[part]:
        name = _WEEKDAYS[number].to(lang)
        named |= {str(number): name, f"{number}.0": name}  # of extract, and of date_part

    return named


def labels_of_column(column: Column, lang: Lang) -> Mapping[str, str]:
    """Return the labels of a column's stored values.

    What the semantic file says comes before the comment; of a comment, labels in Chinese are none
    in English. Values that are words of the language need no label: the file's names for them are
    other names.
    """
    labels = {}
    for value, label in labels_of(column.comment):
        if lang == "zh" or not has_han(label):
            labels[value] = label

    meanings = column.meaning.values if column.meaning is not None else ()
    for one in meanings:
        name = one.names.label(lang)
        if name is not None and not _is_word(one.value, lang):
            labels[one.value] = name

    return {value: label for value, label in labels.items() if value != label}


def _is_word(value: str, lang: Lang) -> bool:
    """Tell whether a stored value is a word of the language, and no code."""
    if lang == "zh":
        return has_han(value)

    return not has_han(value) and _WORD.search(value) is not None
