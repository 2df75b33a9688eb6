"""What is offered in place of a refused question, each of which the rules have understood before it is offered.

To a question back, what may be answered to it, as short texts that complete the pending question when they are asked
next; a text that is not read as the choice that it stands for is not offered. Else questions that rules can answer:
misspelt words replaced by names of the database, a word that may mean several things by each of them, what could not be
placed left out; and as a last resort something plain about the same tables.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from common.inquiry import Inquiry
from common.text import Lang, Text, language_of
from common.values import Offer, Table, Turn
from knowledge.naming import called, plural
from knowledge.spelling import closest
from rules.composing.understanding import Understanding, understand
from rules.conversation.before import settled_by
from rules.conversation.conversation import understand_in_context
from rules.linking.marks import marks_of
from rules.query.pending import Choice, Pending
from rules.query.query_json import to_json
from rules.query.refusals import Refusal, years_of
from rules.schema.lexicon import Lexicon, lexicon_for
from rules.words import WORDS
from rules.words.talk import without_courtesy

_MOST_CHOICES = 6
_OF = Text("{}的{}", "{} {}")
_OFFERED = 4  # of which two that find something are shown
_TRIED = 12
_NEAR = 0.75  # how alike, from 0 to 1, a misspelt word and a word of the database are
_TIES = rf"(?:\b(?:{WORDS.any_of('names.ties')})\s+)*"
_AROUND = f" ,，、.。?？!！{WORDS.chinese.text('names.of')}"
_BY = Text("{}，按{}", "{} by {}")
_PLAIN = (Text("{}有多少", "how many {}"), Text("列出前10条{}", "show 10 {}"))


def choices(inquiry: Inquiry, pending: Pending) -> tuple[Offer, ...]:
    """What may be answered to the question back about `pending`, in the language of the pending question."""
    lexicon = lexicon_for(inquiry)
    turn = Turn("", inquiry.question, "DATABASE", "", "", "", understood=to_json(pending))
    after = replace(inquiry, history=(*inquiry.history, turn))
    offers = (_first(texts, choice, pending, after) for texts, choice in _spelled(pending, lexicon))
    distinct = {offer.question: offer for offer in offers if offer is not None}
    return tuple(distinct.values())[:_MOST_CHOICES] if len(distinct) > 1 else ()


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
    settled = settled_by(text, pending, lexicon_for(after))
    return settled is not None and (choice is None or settled.among([choice]) is not None)


def _answered(text: str, after: Inquiry) -> Offer | None:
    """The text with the SQL of the completed question; without, if something else is asked back."""
    made = understand_in_context(replace(after, question=text))
    if isinstance(made, Understanding):
        return Offer(text, made.sql)
    return Offer(text) if made.pending is not None else None


def rewrites(inquiry: Inquiry, refusal: Refusal) -> tuple[Offer, ...]:
    """A few questions near to the refused one, the nearest first, each of which rules have understood."""
    lexicon = lexicon_for(inquiry)
    candidates = dict.fromkeys(map(_tidied, _candidates(inquiry.question, refusal, lexicon)))
    candidates.pop(_tidied(inquiry.question), None)
    tried = islice((one for one in candidates if one), _TRIED)
    return tuple(islice(filter(None, (_understood(inquiry, one) for one in tried)), _OFFERED))


def _understood(inquiry: Inquiry, question: str) -> Offer | None:
    try:
        return Offer(question, understand(replace(inquiry, question=question, history=())).sql)
    except Refusal:
        return None


def _candidates(question: str, refusal: Refusal, lexicon: Lexicon) -> Iterator[str]:
    lang = language_of(question)
    for spelling in range(2):
        yield _respelt(question, refusal.words, lexicon, spelling)
    for choice in refusal.choices:
        yield from _with_choice(question, refusal.words, choice.to(lang))
    if refusal.reason != "missing_database_info":  # without the name of somebody, it is a question about all
        yield _without(question, refusal.words)
    yield from _plain(question, lexicon, lang)


def _with_choice(question: str, words: tuple[str, ...], choice: str) -> Iterator[str]:
    """The question with the choice in the place of each of the words, and with the choice said at its end."""
    yield from (question.replace(word, choice, 1) for word in words if word in question)
    yield _BY.to(language_of(question)).format(question.rstrip("?？。. "), choice)


def _respelt(question: str, words: tuple[str, ...], lexicon: Lexicon, which: int) -> str:
    """The question with each unknown word replaced by the word of the database that is spelled most like it."""
    for word in words:
        close = closest(word.lower(), lexicon.words_like(word), 2, _NEAR)
        if close:
            question = question.replace(word, close[min(which, len(close) - 1)], 1)
    return question


def _without(question: str, words: tuple[str, ...]) -> str:
    for word in words:
        question = re.sub(rf"{_TIES}{re.escape(word)}" if word.isascii() else re.escape(word), " ", question, count=1)
    return question


def _tidied(question: str) -> str:
    return re.sub(r"\s+", " ", question).strip(_AROUND)


def _plain(question: str, lexicon: Lexicon, lang: Lang) -> Iterator[str]:
    links = [link for mark in marks_of(question, lexicon) for link in mark.links]
    named = [lexicon.schema.table(link.table) for link in links]
    tables: list[Table] = list({table.key: table for table in named if table.kind == "table"}.values())
    for table in tables[:2] or lexicon.schema.catalog.tables[:1]:
        name = called(table).to(lang)
        for form in _PLAIN:
            yield form.to(lang).format(plural(name) if lang == "en" else name)
