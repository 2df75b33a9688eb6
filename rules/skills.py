"""The five skills by rules: the default without a model, the fallback when the model is down."""

import asyncio
from collections.abc import Iterable
from datetime import date
from functools import partial

from common.cpu_clock import within
from common.errors import ForbiddenStatement, InvalidSql
from common.inquiry import Emit, Inquiry, Readability
from common.text import Text
from common.values import (
    Catalog,
    Classification,
    Draft,
    NoSql,
    Offer,
    QueryResult,
    SkillResult,
    Sql,
)
from knowledge.results.visibility_notes import no_rows_said
from knowledge.tables.name_suggestions import KNOWN_NAMES
from rules.answering.alternatives import choices, examples, rewrites
from rules.answering.answer_period import period_of_conditions, period_of_sql
from rules.answering.chat import chat_reply
from rules.answering.classify import classified
from rules.answering.named_columns import changes_of, columns_of
from rules.answering.repair import repaired
from rules.answering.summarize import (
    AnsweredQuestion,
    cuts_rows,
    notes_on,
    shares_first_place,
    spoken_assumptions,
    summary_pieces,
)
from rules.composing.understanding import Understanding
from rules.conversation.conversation import is_complete, understand_in_context, written_operation
from rules.linking.explained import ExplainedWords, explained_words
from rules.query.query import Query
from rules.query.query_json import to_json
from rules.query.refusals import Refusal
from rules.schema.lexicon import LEXICON, lexicon_of
from rules.steps import compute_step
from rules.words import speech
from rules.words.limits import OFFERS_S, STEP_S, with_bounded_questions
from rules.words.statements import pasted_sql

_NOT_REPAIRED = Text("规则无法修复这条 SQL。", "The rules can't mend this SQL.")


class OfflineSkills:
    """Thinking by rules; implements `agent.thinking.Skills`. Holds no state and does no I/O."""

    name = "offline"

    async def prepare(self, catalog: Catalog) -> None:
        """Index the words of a catalogue before questions about it come.

        This takes seconds when the catalogue is large.
        """
        await LEXICON.ready(catalog)
        await KNOWN_NAMES.ready(catalog)
        await asyncio.to_thread(speech.prepare)

    async def classify(self, inquiry: Inquiry) -> SkillResult[Classification]:
        """Classify the question; see `Skills.classify`."""
        await LEXICON.ready(inquiry.catalog)
        return SkillResult(await compute_step(partial(classified, inquiry), inquiry))

    async def write_sql(self, inquiry: Inquiry) -> SkillResult[Draft]:
        """Write SQL for the question; see `Skills.write_sql`.

        SQL pasted into the question is the draft, verbatim: the guard judges it.
        """
        await LEXICON.ready(inquiry.catalog)
        pasted = pasted_sql(inquiry.question, inquiry.catalog)
        if pasted is not None:
            return SkillResult(Sql(pasted))

        inquiry = with_bounded_questions(inquiry)
        operation = await compute_step(partial(_written_operation, inquiry), inquiry)
        if operation is not None:
            hint = _BUILDING if operation in _BUILDS else None
            raise ForbiddenStatement(operation, hint=hint)

        made = await compute_step(partial(understand_in_context, inquiry), inquiry)
        if isinstance(made, Refusal):  # its offers take a while to try
            return SkillResult(await asyncio.to_thread(_refused, inquiry, made))

        return SkillResult(Sql(made.sql, to_json(made.query)), warnings=made.warnings)

    async def readability(self, inquiry: Inquiry) -> Readability:
        """Tell whether SQL can be written for the question, and none of its words is in doubt."""
        await LEXICON.ready(inquiry.catalog)
        inquiry = with_bounded_questions(inquiry)
        made = await compute_step(partial(understand_in_context, inquiry), inquiry)
        if not isinstance(made, Refusal):
            return "readable"

        return "unclear" if made.reason == "ambiguous_question" else "unreadable"

    async def explained(self, inquiry: Inquiry) -> ExplainedWords:
        """Return the words of the question that name something in the catalogue."""
        await LEXICON.ready(inquiry.catalog)
        return await compute_step(partial(explained_words, inquiry), inquiry)

    async def is_complete(self, inquiry: Inquiry) -> bool:
        """Tell whether the question can be understood without those before it."""
        await LEXICON.ready(inquiry.catalog)
        inquiry = with_bounded_questions(inquiry)
        return await compute_step(
            lambda: within(STEP_S, lambda: is_complete(inquiry), False), inquiry
        )

    async def repair_sql(self, inquiry: Inquiry, sql: str, error: InvalidSql) -> SkillResult[Draft]:
        """Repair misspelt tables and columns, nothing else; see `Skills.repair_sql`."""
        text = repaired(sql, error, inquiry.catalog)
        if text is None:
            return SkillResult(NoSql("unknown_generation_failure", _NOT_REPAIRED.to(inquiry.lang)))

        return SkillResult(Sql(text))

    async def summarize(
        self, inquiry: Inquiry, sql: str, result: QueryResult, emit: Emit | None = None
    ) -> SkillResult[str]:
        """Put the result into words; see `Skills.summarize`."""
        await LEXICON.ready(inquiry.catalog)
        understanding = await compute_step(partial(_understanding_of, inquiry, sql), inquiry)
        if understanding is None:
            pieces = summary_pieces(_answered(inquiry, sql, result, None))
        else:
            pieces = summary_pieces(_answered(inquiry, sql, result, understanding.query))
            pieces += spoken_assumptions(understanding.assumptions, inquiry.lang)

        return SkillResult(_emit_and_join(pieces, emit))

    async def chat(self, inquiry: Inquiry, emit: Emit | None = None) -> SkillResult[str]:
        """Answer what is not about the data; see `Skills.chat`."""
        await LEXICON.ready(inquiry.catalog)
        # The examples it offers are tried first, which takes a while over a large catalogue.
        reply = await asyncio.to_thread(chat_reply, inquiry)
        return SkillResult(_emit_and_join(reply.pieces, emit), offers=reply.offers)


def _emit_and_join(pieces: Iterable[str], emit: Emit | None) -> str:
    if emit is not None:
        for piece in pieces:
            emit(piece)

    return "".join(pieces)


_BUILDS = frozenset({"CREATE", "INSERT"})
_BUILDING = Text(
    "要由已有的表加工出新表，请用 POST /api/v0/etl/ask（agent 为 etl）生成可检查、可下载的转换。",
    "To build a table from others, ask POST /api/v0/etl/ask (agent etl) for a transformation, "
    "which is drafted, tested and downloaded.",
)


def _written_operation(inquiry: Inquiry) -> str | None:
    return within(STEP_S, lambda: written_operation(inquiry), None)


def _refused(inquiry: Inquiry, refusal: Refusal) -> NoSql:
    """Return the draft of a refusal, with the offers that are found in time."""
    text = refusal.text.to(inquiry.lang)
    pending = refusal.pending
    if pending is None:
        rewritten = _rewrites(inquiry, refusal)
        asked_instead = () if rewritten else _examples(inquiry, refusal)
        return NoSql(refusal.reason, text, rewrites=rewritten, examples=asked_instead)

    answers = within(OFFERS_S, lambda: choices(inquiry, pending), ())
    # after a clarifying question, the words in doubt are not those of this question
    is_resumed = pending.turns > 1
    rewritten = () if is_resumed else _rewrites(inquiry, refusal, answers)
    return NoSql(
        refusal.reason,
        text,
        to_json(pending),
        choices=answers,
        rewrites=rewritten,
        examples=() if answers or rewritten else _examples(inquiry, refusal),
    )


def _rewrites(
    inquiry: Inquiry, refusal: Refusal, answers: tuple[Offer, ...] = ()
) -> tuple[Offer, ...]:
    return within(OFFERS_S, lambda: rewrites(inquiry, refusal, answers), ())


def _examples(inquiry: Inquiry, refusal: Refusal) -> tuple[Offer, ...]:
    return within(OFFERS_S, lambda: examples(inquiry, refusal), ())


def _answered(
    inquiry: Inquiry, sql: str, result: QueryResult, query: Query | None
) -> AnsweredQuestion:
    """Return the result with all that its summary needs; `query` is None for SQL of somebody
    else.
    """
    catalog, lang, today = inquiry.catalog, inquiry.lang, date.today()
    schema = lexicon_of(catalog).schema
    if query is not None:
        dated = period_of_conditions(query.conditions, schema, today)
    else:
        dated = period_of_sql(sql, catalog, today)

    return AnsweredQuestion(
        result,
        columns_of(query, sql, result, schema, lang, today),
        lang,
        today,
        is_whole=not result.is_limited and not cuts_rows(sql),
        is_shared=shares_first_place(sql),
        dated=dated,
        changes=changes_of(query, len(result.columns), schema, lang, today),
        notes=notes_on(query),
        none=no_rows_said(sql, catalog),
    )


def _understanding_of(inquiry: Inquiry, sql: str) -> Understanding | None:
    """Return the understanding that `sql` was written for; None if these rules have not written
    it.
    """
    made = understand_in_context(with_bounded_questions(inquiry))
    if isinstance(made, Understanding) and made.sql == sql:
        return made

    return None
