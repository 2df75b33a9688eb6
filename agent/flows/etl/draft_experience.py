"""What roles are told of drafts that were made before.

References are data for whoever analyses and writes. Only one of the very same request decides what
is open, and only if a reviewer or the caller stands for it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from common.learning import Example, Experience, Lesson, Trust, same_question
from etl.schemas.knowledge_context import KnownFailure, ReferenceSql
from etl.schemas.requirement import AnalysisResult, UserIntent

_CONFIDENCE: Mapping[Trust, float] = {
    "certified": 0.95,
    "reviewed": 0.9,
    "personal": 0.7,
    "candidate": 0.3,
}
_MOST_CHARS = 16_000  # of the SQL of all references together
_DIGEST_BYTES = 16


def references_of(experience: Experience) -> list[ReferenceSql]:
    """Return the drafts as roles are shown them, candidates last, the most used first.

    Each has the failures of its request; those of other requests follow by themselves.
    """
    ordered = sorted(experience.examples, key=lambda one: (one.trust == "candidate", -one.uses))
    references: list[ReferenceSql] = []
    shown: set[str] = set()
    room = _MOST_CHARS
    for example in ordered:
        room -= len(example.sql)
        if room >= 0:
            failures = [one for one in experience.lessons if one.asked == example.asked]
            references.append(_reference(example, failures))
            shown.add(example.asked)

    for lesson in experience.lessons:
        if lesson.asked not in shown:
            references.append(ReferenceSql(summary=lesson.question, failures=[_failure(lesson)]))

    return references


def _reference(example: Example, lessons: Sequence[Lesson]) -> ReferenceSql:
    return ReferenceSql(
        summary=example.question,
        fingerprint=example.example_id,
        sql_text=example.sql,
        confidence=_CONFIDENCE[example.trust],
        use_count=example.uses,
        trust=example.trust,
        failures=[_failure(lesson) for lesson in lessons],
    )


def _failure(lesson: Lesson) -> KnownFailure:
    return KnownFailure(failure_type=lesson.failure_type, avoidance_hint=lesson.avoidance_hint)


def meaning_of(analysis: AnalysisResult, request: str) -> str:
    """Return a digest of a request that has been analysed without any answers.

    Requests that were read in full have the same when they ask for the same steps, however they
    call the target; others, when they have the same words.
    """
    asked = _steps(analysis.intent) if analysis.intent is not None else same_question(request)
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False)
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def _steps(intent: UserIntent) -> Mapping[str, Any]:
    """Return what of an intent decides on the rows that are built."""
    left_out = {"operations": {"__all__": {"description", "involved_tables", "involved_columns"}}}
    return intent.model_dump(
        mode="json", include={"data_sources", "operations"}, exclude=left_out, exclude_none=True
    )
