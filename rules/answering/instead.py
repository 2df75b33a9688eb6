"""Offers in place of a refused question, each of which the rules have understood before.

With a clarifying question, its answers: short texts that complete the pending question when they
are asked next. A text that is not read as the choice that it stands for is not offered.

Else questions that rules can answer: with misspelt words replaced by names of the database, with
each meaning in the place of an ambiguous word, without the words that had no place; and as a last
resort a plain question about the same tables.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

from common.cpu_clock import within
from common.inquiry import Inquiry
from common.meanings import TableKey
from common.text import Lang, Text, language_of
from common.values import Offer, Table, Turn
from knowledge.language.inflection import plural
from knowledge.language.spelling import closest
from knowledge.language.spoken_names import called
from rules.composing.understanding import Understanding, understand
from rules.conversation.before import settled_by
from rules.conversation.conversation import understand_in_context
from rules.linking.marks import marks_of
from rules.query.pending import Choice, Pending
from rules.query.query_json import to_json
from rules.query.refusals import Refusal, years_of
from rules.schema.lexicon import Lexicon, lexicon_for
from rules.words import WORDS
from rules.words.limits import STEP_S
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
    """Return the answers to the clarifying question of `pending`, in that question's language."""
    lexicon = lexicon_for(inquiry)
    turn = Turn("", inquiry.question, "DATABASE", "", "", "", understood=to_json(pending))
    after = replace(inquiry, history=(*inquiry.history, turn))
    offers: dict[str, Offer] = {}
    for texts, choice in _texts_of_choices(pending, lexicon):
        offer = _first_understood(texts, choice, pending, after)
        if offer is not None:
            offers[offer.question] = offer
    if len(offers) < 2:
        return ()
    return tuple(offers.values())[:_MOST_CHOICES]


def _first_understood(
    texts: list[str], choice: Choice | None, pending: Pending, after: Inquiry
) -> Offer | None:
    """Return the first of the texts that is read as the choice, and completes the question."""
    for text in texts:
        if not _is_read_as(text, choice, pending, after):
            continue
        offer = _completing(text, after)
        if offer is not None:
            return offer
    return None


def _texts_of_choices(
    pending: Pending, lexicon: Lexicon
) -> Iterator[tuple[list[str], Choice | None]]:
    """Yield the texts for each answer, shortest first, with its choice, if it is one of several."""
    missing, lang = pending.missing, language_of(without_courtesy(pending.question))
    if missing.kind == "year":
        for year in years_of(missing.word):
            yield [year.to(lang)], None
    elif missing.kind == "figure":
        for key, _ in missing.choices:
            for column in lexicon.schema.facts[key].measures:
                yield [called(column).to(lang)], None
    else:
        for choice in missing.choices:
            yield _texts_of_choice(choice, lexicon, lang), choice


def _texts_of_choice(choice: Choice, lexicon: Lexicon, lang: Lang) -> list[str]:
    """Return the ways to name a table or a column, shortest first."""
    key, column_name = choice
    table = lexicon.schema.table(key)
    table_name = called(table).to(lang)
    column = table.column(column_name) if column_name is not None else None
    if column is None:
        return [table_name]
    name = called(column).to(lang)
    return [
        name,
        _OF.to(lang).format(table_name, name),
        column.name,
        f"{table.name} {column.name}",
    ]


def _is_read_as(text: str, choice: Choice | None, pending: Pending, after: Inquiry) -> bool:
    settled = settled_by(text, pending, lexicon_for(after))
    if settled is None:
        return False
    return choice is None or settled.among([choice]) is not None


def _completing(text: str, after: Inquiry) -> Offer | None:
    """Return the text with the SQL of the question that it completes.

    Without SQL, if that needs a further clarifying question.
    """
    made = understand_in_context(replace(after, question=text))
    if isinstance(made, Understanding):
        return Offer(text, made.sql)
    return Offer(text) if made.pending is not None else None


def rewrites(inquiry: Inquiry, refusal: Refusal) -> tuple[Offer, ...]:
    """Return a few questions like the refused one that rules can answer, the most alike first."""
    lexicon = lexicon_for(inquiry)
    candidates = dict.fromkeys(map(_tidied, _candidates(inquiry.question, refusal, lexicon)))
    for no_question in ("", _tidied(inquiry.question)):
        candidates.pop(no_question, None)
    tried = islice(candidates, _TRIED)
    understood = (within(STEP_S, partial(_understood, inquiry, one), None) for one in tried)
    return tuple(islice(filter(None, understood), _OFFERED))


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
    if refusal.reason != "missing_database_info":
        # without the name of somebody, it would be a question about all
        yield _without(question, refusal.words)
    yield from _plain(question, lexicon, lang)


def _with_choice(question: str, words: tuple[str, ...], choice: str) -> Iterator[str]:
    """Yield the question with the choice in the place of each of the words, and at its end."""
    for word in words:
        if word in question:
            yield question.replace(word, choice, 1)
    yield _BY.to(language_of(question)).format(question.rstrip("?？。. "), choice)


def _respelt(question: str, words: tuple[str, ...], lexicon: Lexicon, which: int) -> str:
    """Return the question with the unknown words replaced by words of the database, spelled like
    them.

    Args:
        which: 0 for the most alike words, 1 for the second ones.
    """
    for word in words:
        similar = closest(word.lower(), lexicon.words_like(word), 2, _NEAR)
        if similar:
            chosen = similar[min(which, len(similar) - 1)]
            question = question.replace(word, chosen, 1)
    return question


def _without(question: str, words: tuple[str, ...]) -> str:
    for word in words:
        pattern = re.escape(word)
        if word.isascii():
            pattern = rf"{_TIES}{pattern}"
        question = re.sub(pattern, " ", question, count=1)
    return question


def _tidied(question: str) -> str:
    return re.sub(r"\s+", " ", question).strip(_AROUND)


def _plain(question: str, lexicon: Lexicon, lang: Lang) -> Iterator[str]:
    """Yield plain questions about the tables that the question names, else about any."""
    tables: dict[TableKey, Table] = {}
    for mark in marks_of(question, lexicon):
        for link in mark.links:
            table = lexicon.schema.table(link.table)
            if table.kind == "table":
                tables[table.key] = table
    named = list(tables.values())[:2]
    for table in named or lexicon.schema.catalog.tables[:1]:
        name = called(table).to(lang)
        for form in _PLAIN:
            yield form.to(lang).format(plural(name) if lang == "en" else name)
