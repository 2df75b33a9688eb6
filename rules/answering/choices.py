"""What may be answered to a question back, as short texts that complete the pending question when they are asked next.

Each is answered in advance: a text that is not read as the choice that it stands for is not offered.
"""

from collections.abc import Iterator
from dataclasses import replace

from common.inquiry import Inquiry
from common.text import Text, language_of
from common.values import Offer, Turn
from knowledge.naming import called
from rules.composing.understanding import Understanding
from rules.conversation.conversation import understand_in_context
from rules.conversation.resuming import settled_by
from rules.query.pending import Choice, Pending
from rules.query.query_json import to_json
from rules.query.refusals import years_of
from rules.schema.lexicon import Lexicon, lexicon_for
from rules.words.talk import without_courtesy

_MOST = 6
_OF = Text("{}的{}", "{} {}")


def choices(inquiry: Inquiry, pending: Pending) -> tuple[Offer, ...]:
    """What may be answered to the question back about `pending`, in the language of the pending question."""
    lexicon = lexicon_for(inquiry)
    turn = Turn("", inquiry.question, "DATABASE", "", "", "", understood=to_json(pending))
    after = replace(inquiry, history=(*inquiry.history, turn))
    offers = (_first(texts, choice, pending, after) for texts, choice in _spelled(pending, lexicon))
    distinct = {offer.question: offer for offer in offers if offer is not None}
    return tuple(distinct.values())[:_MOST] if len(distinct) > 1 else ()


def _first(texts: list[str], choice: Choice | None, pending: Pending, after: Inquiry) -> Offer | None:
    """The first of the texts that is read as the choice."""
    read = (text for text in texts if _is_read(text, choice, pending, after))
    return next(filter(None, (_answered(text, after) for text in read)), None)


def _spelled(pending: Pending, lexicon: Lexicon) -> Iterator[tuple[list[str], Choice | None]]:
    """How each choice may be said, shortest first, and which one it is, where it is one of several."""
    missing, lang = pending.missing, language_of(without_courtesy(pending.question))
    if missing.kind == "year":
        yield from (([year.to(lang)], None) for year in years_of(missing.word))
    elif missing.kind == "figure":
        for key, _ in missing.choices:
            yield from (([called(column).to(lang)], None) for column in lexicon.schema.facts[key].measures)
    for choice in missing.choices if missing.kind == "choice" else ():
        thing = lexicon.schema.table(choice[0])
        column = thing.column(choice[1]) if choice[1] is not None else None
        owner = called(thing).to(lang)
        if column is None:
            yield [owner], choice
        else:
            name = called(column).to(lang)
            yield [name, _OF.to(lang).format(owner, name), column.name, f"{thing.name} {column.name}"], choice


def _is_read(text: str, choice: Choice | None, pending: Pending, after: Inquiry) -> bool:
    is_chinese = language_of(without_courtesy(pending.question)) == "zh"
    settled = settled_by(text, pending.missing, pending.settled, lexicon_for(after), is_chinese)
    return settled is not None and (choice is None or settled.among([choice]) is not None)


def _answered(text: str, after: Inquiry) -> Offer | None:
    """The text with the SQL of the completed question; without, if something else is asked back."""
    made = understand_in_context(replace(after, question=text))
    if isinstance(made, Understanding):
        return Offer(text, made.sql)
    return Offer(text) if made.pending is not None else None
