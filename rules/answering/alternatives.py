"""Offers in place of a refused question, each of which the rules have understood before.

With a clarifying question, its answers: short texts that complete the pending question when they
are asked next. A text that is not read as the choice that it stands for is not offered.

Rewrites are the refused question with misspelt words replaced by names of the database, or with a
meaning in the place of an ambiguous word. No word is left out, because it may be a condition or a
negation. Where no rewrite is understood, there are examples of what the tables can be asked.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import islice

from common.cpu_clock import within
from common.inquiry import Inquiry
from common.text import Lang, Text, language_of
from common.values import Offer, Turn
from knowledge.language.cutting import has_han
from knowledge.language.spelling import closest
from knowledge.language.spoken_names import called
from rules.answering.offers import askable
from rules.composing.understanding import Understanding
from rules.conversation.conversation import understand_in_context
from rules.conversation.prior_turns import settled_by
from rules.linking.marks import marks_of
from rules.query.pending import Choice, Missing, Pending
from rules.query.query_json import to_json
from rules.query.refusals import Refusal, years_of
from rules.schema.lexicon import Lexicon, lexicon_for
from rules.words import WORDS
from rules.words.limits import STEP_S
from rules.words.talk import without_courtesy

_MOST_CHOICES = 6
_MOST_YEARS = 4
_OF = Text("{}的{}", "{} {}")
_OFFERED = 4  # of which two that find something are shown
_TRIED = 12
_NEAR = 0.75  # how alike, from 0 to 1, a misspelt word and a word of the database are
_AROUND = f" ,，、.。?？!！{WORDS.chinese.text('names.of')}"
_BY = Text("{}，按{}", "{} by {}")
_MOST_EXAMPLES = 6  # of which three that find something are shown


def choices(inquiry: Inquiry, pending: Pending) -> tuple[Offer, ...]:
    """Return the answers to the clarifying question of `pending`, in that question's language."""
    lexicon = lexicon_for(inquiry)
    if asks_for_aspect(pending.question, pending.missing, lexicon):
        return ()

    turn = Turn("", inquiry.question, "DATABASE", "", "", "", understood=to_json(pending))
    after = replace(inquiry, history=(*inquiry.history, turn))
    offers: dict[str, Offer] = {}
    for texts, choice in _texts_of_choices(pending, lexicon):
        offer = _first_understood(texts, choice, pending, after)
        if offer is not None:
            offers[offer.question] = offer

    # A table's only figure is worth one click; of columns and years, a single one is no choice.
    if len(offers) < 2 and pending.missing.kind != "figure":
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
        for year in (*years_of(missing.word), *_years_of_data(missing.word, lexicon)):
            yield [year.to(lang)], None
    elif missing.figures:
        for figure in missing.figures:
            yield [Text(*figure).to(lang)], None
    elif missing.kind == "figure":
        for key, _ in missing.choices:
            for column in lexicon.schema.facts[key].measures:
                yield [called(column).to(lang)], None
    else:
        for choice in missing.choices:
            yield _texts_of_choice(choice, lexicon, lang), choice


def _years_of_data(word: str, lexicon: Lexicon) -> Iterator[Text]:
    """Say the month or quarter `word` of the years of which there are dates, the last one first."""
    years: set[int] = set()
    for table in lexicon.schema.catalog.tables:
        for column in table.columns:
            if column.period is not None:
                first, last = (int(day[:4]) for day in column.period)
                years.update(range(max(first, last - _MOST_YEARS), last + 1))

    this_year = date.today().year
    for year in sorted(years, reverse=True)[:_MOST_YEARS]:
        if year < this_year - 1:
            yield Text(f"{year}年{word}", f"{word} {year}")


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


def rewrites(
    inquiry: Inquiry, refusal: Refusal, answers: tuple[Offer, ...] = ()
) -> tuple[Offer, ...]:
    """Return a few questions that say what the refused one says and that rules can answer.

    The most alike come first.

    Args:
        answers: the choices of a clarifying question. A question that names one has to mean what
            that choice means.
    """
    lexicon = lexicon_for(inquiry)
    if asks_for_aspect(inquiry.question, refusal.missing, lexicon):
        return ()

    meant = frozenset(answer.sql for answer in answers)
    candidates: dict[str, frozenset[str | None]] = {}
    for text in _respelt_twice(inquiry.question, refusal.words, lexicon):
        candidates.setdefault(_tidied(text), frozenset())

    # Of "sold the most", a figure in its place would leave no ranking.
    ranks = refusal.missing is not None and refusal.missing.kind == "figure"
    # Of which things there are rows is no group: "books by German authors by books".
    said_of = refusal.choices if ranks or refusal.words else ()
    for choice in said_of:
        lang = language_of(inquiry.question)
        words = () if ranks else refusal.words
        for text in _with_choice(inquiry.question, words, choice.to(lang)):
            candidates.setdefault(_tidied(text), meant)

    for no_question in ("", _tidied(inquiry.question)):
        candidates.pop(no_question, None)

    after = refused_before(inquiry, refusal)
    offers: dict[str | None, Offer] = {}  # by statement, because no two say the same
    for text, wanted in islice(candidates.items(), _TRIED):
        offer = within(STEP_S, partial(_understood, after, text, wanted), None)
        if offer is not None:
            offers.setdefault(offer.sql, offer)

    return tuple(offers.values())[:_OFFERED]


def asks_for_aspect(question: str, missing: Missing | None, lexicon: Lexicon) -> bool:
    """Tell whether a ranking says by what, as "most sold" does, and the database has no such
    figure: any other one would be a ranking that nobody asked for.
    """
    if missing is None or missing.kind != "figure" or missing.figures:
        return False

    return any(mark.means("super") and mark.arg[1:] for mark in marks_of(question, lexicon))


def refused_before(inquiry: Inquiry, refusal: Refusal) -> Inquiry:
    """Return the inquiry of a question that is asked after the refused one."""
    understood = to_json(refusal.pending) if refusal.pending is not None else None
    turn = Turn("", inquiry.question, "DATABASE", "", "", "", understood=understood)
    return replace(inquiry, history=(*inquiry.history, turn))


def _understood(after: Inquiry, question: str, wanted: frozenset[str | None]) -> Offer | None:
    """Return the question as an offer, if it means by itself what it means when it is asked next.

    Args:
        wanted: the statements of which it has to mean one; any if empty.
    """
    alone = understand_in_context(replace(after, question=question, history=()))
    if not isinstance(alone, Understanding) or (wanted and alone.sql not in wanted):
        return None

    asked_next = understand_in_context(replace(after, question=question))
    is_same = isinstance(asked_next, Understanding) and asked_next.sql == alone.sql
    return Offer(question, alone.sql) if is_same else None


def _respelt_twice(question: str, words: tuple[str, ...], lexicon: Lexicon) -> Iterator[str]:
    for spelling in range(2):
        yield _respelt(question, words, lexicon, spelling)


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
        similar_words = closest(word.lower(), lexicon.words_like(word), 2, _NEAR)
        similar = [one for one in similar_words if not _leaves_out(word, one)]
        if similar:
            chosen = similar[min(which, len(similar) - 1)]
            question = question.replace(word, chosen, 1)

    return question


def _leaves_out(word: str, name: str) -> bool:
    """Tell whether the name is a part of a Chinese word, of which the rest may mean something."""
    return has_han(word) and name in word


def _tidied(question: str) -> str:
    return re.sub(r"\s+", " ", question).strip(_AROUND)


def examples(inquiry: Inquiry, refusal: Refusal) -> tuple[Offer, ...]:
    """Return questions of different kinds that the tables of a refused question can be asked."""
    after = refused_before(inquiry, refusal)
    texts = islice(askable(inquiry.question, inquiry.catalog), _MOST_EXAMPLES)
    understood = (_understood(after, text, frozenset()) for text in texts)
    return tuple(filter(None, understood))
