"""Examples and lessons as endpoints show them."""

from typing import Any

from common.learning import EtlExample, EtlLesson, Example, Lesson
from store.learned_json import state_of


def learnt_item_json(item: Example | Lesson) -> dict[str, Any]:
    """Return the example or lesson, with what it is in `kind`."""
    common = {
        "question": item.question,
        "sql": item.sql,
        "lang": item.lang,
        "author": item.author,
        "reviewer": item.reviewer,
        "state": state_of(item),
        "created_at": item.created_at,
    }
    if isinstance(item, Lesson):
        return {
            "kind": "lesson",
            "lesson_id": item.lesson_id,
            **common,
            "is_shared": item.is_shared,
            "failure_type": item.failure_type,
            "root_cause": item.root_cause,
            "avoidance_hint": item.avoidance_hint,
            "etl": {"meaning": item.meaning} if isinstance(item, EtlLesson) else None,
        }

    return {
        "kind": "etl" if isinstance(item, EtlExample) else "example",
        "example_id": item.example_id,
        **common,
        "trust": item.trust,
        "source": item.source,
        "tables": [".".join(table) for table in item.tables],
        "proven_at": item.proven_at,
        "uses": item.uses,
        "stale_reason": item.stale_reason,
        "etl": _draft(item) if isinstance(item, EtlExample) else None,
    }


def _draft(example: EtlExample) -> dict[str, Any]:
    return {
        "meaning": example.meaning,
        "intent": example.intent,
        "code": [{"node": node, "sql": sql} for node, sql in example.code],
        "target": example.target,
        "answers": example.answers,
    }
