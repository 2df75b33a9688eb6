"""The five skills by rules: the default without a model, and the fallback when the model is down."""

import asyncio
from datetime import date

from common.errors import ForbiddenStatement, InvalidSql
from common.inquiry import Emit, Inquiry
from common.text import Text
from common.values import Catalog, Classification, Draft, NoSql, QueryResult, Sql, Thought
from knowledge.near_names import KNOWN_NAMES
from rules.answering.chat import chat_pieces
from rules.answering.classify import classified
from rules.answering.dated import dated_by, dated_in
from rules.answering.instead import choices, rewrites
from rules.answering.named_columns import changes_of, columns_of
from rules.answering.repair import repaired
from rules.answering.summarize import Answered, cuts_rows, notes_on, spoken_assumptions, summary_pieces
from rules.composing.understanding import Understanding
from rules.conversation.conversation import is_complete, understand_in_context, written_operation
from rules.query.query_json import to_json
from rules.query.refusals import Refusal
from rules.schema.lexicon import LEXICON, lexicon_of
from rules.words.statements import pasted_sql

_NOT_MENDED = Text("规则无法修复这条 SQL。", "The rules can't mend this SQL.")


class OfflineSkills:
    """Thinking by rules; implements `agent.thinking.Skills`. Holds no state and does no I/O."""

    name = "offline"

    async def prepare(self, catalog: Catalog) -> None:
        """Reads the words of a catalogue that questions will be about, which takes seconds when it is large."""
        await LEXICON.ready(catalog)
        await KNOWN_NAMES.ready(catalog)

    async def classify(self, inquiry: Inquiry) -> Thought[Classification]:
        """See `Skills.classify`."""
        await LEXICON.ready(inquiry.catalog)
        return Thought(classified(inquiry))

    async def write_sql(self, inquiry: Inquiry) -> Thought[Draft]:
        """See `Skills.write_sql`. SQL pasted into the question is the draft, verbatim: the guard judges it."""
        await LEXICON.ready(inquiry.catalog)
        pasted = pasted_sql(inquiry.question, inquiry.catalog)
        if pasted is not None:
            return Thought(Sql(pasted))
        operation = written_operation(inquiry)
        if operation is not None:
            raise ForbiddenStatement(operation)
        made = understand_in_context(inquiry)
        if isinstance(made, Refusal):
            return Thought(_refused(inquiry, made))
        return Thought(Sql(made.sql, to_json(made.query)), warnings=made.warnings)

    async def is_complete(self, inquiry: Inquiry) -> bool:
        """Whether the question says by itself what it asks for, whatever was asked before."""
        await LEXICON.ready(inquiry.catalog)
        return is_complete(inquiry)

    async def repair_sql(self, inquiry: Inquiry, sql: str, error: InvalidSql) -> Thought[Draft]:
        """See `Skills.repair_sql`. Mends misspelt tables and columns only."""
        mended = repaired(sql, error, inquiry.catalog)
        return Thought(
            Sql(mended) if mended is not None else NoSql("unknown_generation_failure", _NOT_MENDED.to(inquiry.lang))
        )

    async def summarize(
        self, inquiry: Inquiry, sql: str, result: QueryResult, emit: Emit | None = None
    ) -> Thought[str]:
        """See `Skills.summarize`."""
        await LEXICON.ready(inquiry.catalog)
        schema = lexicon_of(inquiry.catalog).schema
        understanding = _understanding_of(inquiry, sql)
        query = understanding.query if understanding is not None else None
        today = date.today()
        answered = Answered(
            result,
            columns_of(query, sql, result, schema, inquiry.lang, today),
            inquiry.lang,
            today,
            is_whole=not result.is_limited and not cuts_rows(sql),
            dated=dated_by(query.conditions, schema, today)
            if query is not None
            else dated_in(sql, inquiry.catalog, today),
            changes=changes_of(query, len(result.columns), schema, inquiry.lang, today),
            notes=notes_on(query),
        )
        pieces = summary_pieces(answered)
        if understanding is not None:
            pieces += spoken_assumptions(understanding.assumptions, inquiry.lang)
        return Thought(_emitted(pieces, emit))

    async def chat(self, inquiry: Inquiry, emit: Emit | None = None) -> Thought[str]:
        """See `Skills.chat`."""
        await LEXICON.ready(inquiry.catalog)
        # The examples it offers are tried first, which takes a while over a large catalogue.
        return Thought(_emitted(await asyncio.to_thread(chat_pieces, inquiry), emit))


def _emitted(pieces: list[str], emit: Emit | None) -> str:
    for piece in pieces if emit is not None else ():
        emit(piece)  # type: ignore[misc]
    return "".join(pieces)


def _refused(inquiry: Inquiry, refusal: Refusal) -> NoSql:
    pending = refusal.pending
    is_resumed = pending is not None and pending.turns > 1  # then the words in doubt are not those of this question
    return NoSql(
        refusal.reason,
        refusal.text.to(inquiry.lang),
        to_json(pending) if pending is not None else None,
        choices=choices(inquiry, pending) if pending is not None else (),
        rewrites=() if is_resumed else rewrites(inquiry, refusal),
    )


def _understanding_of(inquiry: Inquiry, sql: str) -> Understanding | None:
    """What is behind `sql`, when it was these rules that wrote it."""
    made = understand_in_context(inquiry)
    return made if isinstance(made, Understanding) and made.sql == sql else None
