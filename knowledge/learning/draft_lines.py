"""Reads what was learnt of drafts of transformations from lines that people bring.

Such a line has `etl` beside the fields of any example or lesson: `{"meaning", "intent", "code",
"target", "answers"}` of an example, `{"meaning"}` of a lesson.
"""

from collections.abc import Mapping
from typing import Any

from common.learning import (
    MAX_DRAFT_CHARS,
    EtlExample,
    EtlLesson,
    Example,
    Lesson,
    example_id,
    lesson_id,
)
from common.text import Text
from knowledge.learning.line_fields import invalid_field, text_field

_MOST_NODES = 100
_MOST_ANSWERS = 50
_MOST_INTENT_PARTS = 50
_MOST_NAME_CHARS = 200
_OBJECT = Text("一个对象", "an object")
_NODES = Text(f"1 到 {_MOST_NODES} 个节点的列表", f"a list of 1 to {_MOST_NODES} nodes")
_ANSWERS = Text("文本到文本的对象", "an object of texts")


def draft_example(example: Example, values: Mapping[str, Any]) -> EtlExample:
    """Return the example with what its line says of the draft.

    Raises:
        InvalidRequest: a field is missing or wrong.
    """
    draft = _object(values, "etl")
    meaning = text_field(draft, "meaning", _MOST_NAME_CHARS)
    intent = _object(draft, "intent")
    about = vars(example) | {
        "example_id": example_id(example.datasource, example.author, meaning, example.sql)
    }
    return EtlExample(
        **about,
        meaning=meaning,
        intent=intent,
        code=_code(draft),
        target=text_field(draft, "target", _MOST_NAME_CHARS),
        answers=_answers(draft),
    )


def draft_lesson(lesson: Lesson, values: Mapping[str, Any]) -> EtlLesson:
    """Return the lesson with what its line says of the draft.

    Raises:
        InvalidRequest: a field is missing or wrong.
    """
    meaning = text_field(_object(values, "etl"), "meaning", _MOST_NAME_CHARS)
    content = (lesson.sql, lesson.root_cause, lesson.avoidance_hint)
    id_ = lesson_id(lesson.datasource, lesson.author, meaning, *content)
    return EtlLesson(**vars(lesson) | {"lesson_id": id_}, meaning=meaning)


def _object(values: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = values.get(field)
    if not isinstance(value, dict) or len(value) > _MOST_INTENT_PARTS:
        raise invalid_field(field, _OBJECT)

    return value


def _code(draft: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    nodes = draft.get("code")
    if not isinstance(nodes, list) or not 0 < len(nodes) <= _MOST_NODES:
        raise invalid_field("code", _NODES)

    return tuple(_node(node) for node in nodes)


def _node(node: object) -> tuple[str, str]:
    if not isinstance(node, dict):
        raise invalid_field("code", _NODES)

    return text_field(node, "node", _MOST_NAME_CHARS), text_field(node, "sql", MAX_DRAFT_CHARS)


def _answers(draft: Mapping[str, Any]) -> Mapping[str, str]:
    answers = draft.get("answers", {})
    if not isinstance(answers, dict) or len(answers) > _MOST_ANSWERS:
        raise invalid_field("answers", _ANSWERS)

    return {name: _answer(name, value) for name, value in answers.items()}


def _answer(name: str, value: object) -> str:
    is_short = isinstance(value, str) and max(len(name), len(value)) <= _MOST_NAME_CHARS
    if not is_short:
        raise invalid_field("answers", _ANSWERS)

    return str(value)
