"""Turns a request in words into a bound intent, or into questions where it is ambiguous.

Questions about the sentence come first. The intent is bound once these are answered.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from common.cpu_clock import within
from common.errors import InvalidRequest
from common.text import Text
from common.values import Catalog
from etl.binding.intent_binding import BindingOptions, BindingResult, bind_intent
from etl.binding.request_findings import RequestFindings, UserChoice
from etl.clauses.sentence_reading import read_sentence
from etl.schemas.requirement import UserIntent
from rules.schema.lexicon import LEXICON, Lexicon

_READING_S = 0.25  # of processor time; more than for a question, as a request has many clauses
_TOO_LONG = Text(
    "这段描述太长，无法按规则读完：请分成几次，或直接给出 intent。",
    "The request is too long to be read by rules: ask for less at once, or give an intent.",
)


@dataclass(frozen=True)
class EarlierTurns:
    """The turns of a conversation before a request.

    Attributes:
        intent: the intent of the last request, which a follow-up changes.
        chosen: what the user chose, which is not asked again.
    """

    intent: UserIntent | None = None
    chosen: tuple[UserChoice, ...] = ()


NOTHING_EARLIER = EarlierTurns()


async def analysed_sentence(
    question: str,
    catalog: Catalog,
    answers: Mapping[str, str],
    options: BindingOptions,
    earlier: EarlierTurns = NOTHING_EARLIER,
) -> BindingResult:
    """Read a request in words and bind it to the caller's catalogue.

    Args:
        answers: values chosen for earlier questions, by the ids of their ambiguities.

    Raises:
        InvalidRequest: the request is too long to be read.
    """
    lexicon = await LEXICON.ready(catalog)
    findings = RequestFindings(answers, options.lang, earlier.chosen)
    return await asyncio.to_thread(
        _analyse, question, catalog, lexicon, findings, options, earlier.intent
    )


def _analyse(
    question: str,
    catalog: Catalog,
    lexicon: Lexicon,
    findings: RequestFindings,
    options: BindingOptions,
    earlier: UserIntent | None,
) -> BindingResult:
    def read() -> tuple[UserIntent | None]:
        return (read_sentence(question, catalog, lexicon, findings, earlier),)

    is_read = within(_READING_S, read, None)
    if is_read is None:
        raise InvalidRequest(_TOO_LONG, field="question")

    (intent,) = is_read
    if intent is None:
        return BindingResult(None, findings.analysis(None, "rules"), chosen=findings.chosen)

    bound = None
    try:
        bound = bind_intent(intent, catalog, {}, options, findings).bound
    except InvalidRequest as exc:  # its field is one of the intent, which the user did not write
        findings.refuse("unsupported", exc.text)

    analysis = findings.analysis(intent, "rules")
    return BindingResult(bound, analysis, findings.decisions, findings.chosen)
