"""A request in words → a bound intent, or what is open: reads the sentence, then binds its intent.

Reading asks first, binding when reading is done. Both number their questions by kind; here their
ids become one sequence, so that an answer never reaches the wrong question.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping

from common.cpu_clock import within
from common.errors import InvalidRequest
from common.text import Text
from common.values import Catalog
from etl.binding.intent_binding import BindingOptions, BindingResult, bind_intent
from etl.clauses.sentence_reading import SentenceReading, read_sentence
from etl.schemas.requirement import Ambiguity, AnalysisResult
from rules.schema.lexicon import LEXICON, Lexicon

_READING_S = 0.25  # of processor time: a request has many clauses, a question has one
_TOO_LONG = Text(
    "这段描述太长，无法按规则读完：请分成几次，或直接给出 intent。",
    "The request is too long to be read by rules: ask for less at once, or give an intent.",
)


async def analysed_sentence(
    question: str, catalog: Catalog, answers: Mapping[str, str], options: BindingOptions
) -> BindingResult:
    """Read a request in words and bind it to the caller's catalogue.

    Args:
        answers: values chosen for earlier questions, by the ids of their ambiguities.

    Raises:
        InvalidRequest: the request is too long to be read.
    """
    lexicon = await LEXICON.ready(catalog)
    return await asyncio.to_thread(_analysed, question, catalog, lexicon, answers, options)


def _analysed(
    question: str,
    catalog: Catalog,
    lexicon: Lexicon,
    answers: Mapping[str, str],
    options: BindingOptions,
) -> BindingResult:
    reading = within(
        _READING_S,
        lambda: read_sentence(question, options.lang, catalog, lexicon, answers),
        None,
    )
    if reading is None:
        raise InvalidRequest(_TOO_LONG, field="question")
    if reading.intent is None:
        return BindingResult(None, _analysis(reading))
    used = _used_by_kind(reading.used)
    result = bind_intent(reading.intent, catalog, _inner(answers, used), options)
    analysis = result.analysis
    ambiguities = [_outer(one, used) for one in analysis.ambiguities]
    assumptions = [*reading.assumptions, *analysis.assumptions]
    return BindingResult(
        result.bound,
        analysis.model_copy(
            update={"ambiguities": ambiguities, "assumptions": assumptions, "method": "rules"}
        ),
    )


def _analysis(reading: SentenceReading) -> AnalysisResult:
    return AnalysisResult(
        ambiguities=list(reading.ambiguities),
        assumptions=list(reading.assumptions),
        impossible=list(reading.impossible),
        method="rules",
    )


def _used_by_kind(used: Iterable[str]) -> Counter[str]:
    """Return how many questions of each kind the reading has put."""
    counts: Counter[str] = Counter()
    for identity in used:
        kind, number = _parts(identity)
        counts[kind] = max(counts[kind], number)
    return counts


def _parts(identity: str) -> tuple[str, int]:
    """Return the kind and the number of `date_column_2`; the first one has no number."""
    kind, _, number = identity.rpartition("_")
    if number.isdigit():
        return kind, int(number)
    return identity, 1


def _named(kind: str, number: int) -> str:
    return kind if number == 1 else f"{kind}_{number}"


def _inner(answers: Mapping[str, str], used: Counter[str]) -> dict[str, str]:
    """Return the answers that are left for binding, under the ids that it gives."""
    left = {}
    for identity, answer in answers.items():
        kind, number = _parts(identity)
        if number > used[kind]:
            left[_named(kind, number - used[kind])] = answer
    return left


def _outer(ambiguity: Ambiguity, used: Counter[str]) -> Ambiguity:
    kind, number = _parts(ambiguity.id)
    return ambiguity.model_copy(update={"id": _named(kind, number + used[kind])})
