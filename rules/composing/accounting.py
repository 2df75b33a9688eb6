"""Refuses statements that leave out something that the question says.

A word that is passed over because it mostly says nothing is looked at again once it is known which
tables answer: "now" matters where they tell until when something holds.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from common.meanings import TableKey
from knowledge.language.spoken_names import called
from rules.composing.asked import Asked
from rules.linking.mark import Mark
from rules.query.query import ColumnRef, Condition, Either, Query, touched
from rules.query.refusals import unclear_state, unused_words
from rules.reading.words import ColumnIdentity, Word
from rules.schema.table_facts import is_due, tells_end
from rules.words import WORDS
from rules.words.speech import part_of_speech

_ALREADY = frozenset(WORDS.chinese.phrases("questions.already"))
_NOUN_ENDINGS = frozenset(WORDS.chinese.phrases("questions.noun_endings"))
_HAVE = frozenset(WORDS.both("questions.have"))
_IN_STATE = WORDS.chinese.pattern("questions.in_state")
_TIMES_OF_DAY = frozenset(WORDS.both("questions.times_of_day"))
_ARTICLES = WORDS.english.phrases("questions.articles")
_LIVE = frozenset(WORDS.both("questions.live"))
_PAST = WORDS.english.phrases("questions.past_ends")
_STILL = frozenset(WORDS.both("questions.still"))
_WHOLE_NAME = 0.9  # quality
_THINGS = frozenset(("tab", "tcol", "mcol", "dcol"))
_STATE = "state"  # the argument of words that say that something holds now


def refuse_unaccounted(asked: Asked, query: Query) -> None:
    """Refuse a query that does not hold all that the question says.

    Raises:
        Refusal: names the words, or asks what they mean.
    """
    _refuse_unasked_states(asked, query)
    _refuse_passed_states(asked, query)
    _refuse_shown_verbs(asked, query)
    _refuse_shown_possessions(asked, query)
    _refuse_homes_of_others(asked, query)
    _refuse_pieces_of_words(asked, query)
    _refuse_lost_comparisons(asked, query)
    _refuse_states_of_others(asked, query)
    _refuse_parts_of_others(asked, query)
    _refuse_dates_of_others(asked, query)
    _refuse_groups_of_nothing(asked, query)
    _refuse_shares_of_everything(asked, query)
    _refuse_alternatives_within(asked, query)
    _refuse_kinds_of_values(asked)
    _refuse_moments_as_states(asked, query)
    _refuse_dates_as_things(asked)
    _refuse_kinds_as_conditions(asked, query)
    _refuse_states_as_dates(asked, query)
    _refuse_hours_of_others(asked, query)
    _refuse_listed_groups(asked, query)


def _refuse_unasked_states(asked: Asked, query: Query) -> None:
    """Refuse "now" and "still" where a column tells until when, and nothing is asked of it."""
    said = [mark.text for mark in _marks_of_state(asked)] + _states_cut(asked)
    if not said:
        return

    asked_of = set(_restricted(query))
    for key in sorted(touched(query)):
        telling = _telling_ends(asked, key)
        if telling and asked_of.isdisjoint(telling):
            table, name = asked.question.schema.table(key), telling[0][1]
            column = asked.question.schema.column(key, name)
            raise unclear_state(said, called(table), called(column))

    still = [text for text in said if text.lower() in _STILL]
    if still and not asked_of and not query.related:
        raise unused_words(still)


def _refuse_passed_states(asked: Asked, query: Query) -> None:
    """Refuse to pass over what happened to only some of the rows: "samples that were rejected".

    Its column, the reason or the date, is empty for the others.
    """
    used: set[ColumnIdentity] = {(one.table, one.column) for one in query.measures}
    used.update(_restricted(query))
    for word in asked.question.words:
        named = {(link.table, link.column) for link in word.mark.links if link.kind == "column"}
        if word.is_weak_verb and _is_piece_of_state(word, used):
            raise unused_words([word.text])
        if word.is_weak_verb and used.isdisjoint(named):
            states = [one for one in named if _may_be_empty(asked, query, *one)]
            if states and word.text.lower().endswith(_PAST):
                raise unused_words([word.text])


def _is_piece_of_state(word: Word, used: set[ColumnIdentity]) -> bool:
    """Tell whether a word is a part of a stored state that nothing asks for: "run out"."""
    states = {(link.table, link.column) for link in word.mark.links if link.kind == "value"}
    is_particle = part_of_speech(word.text, "en") == "preposition"
    return is_particle and bool(states) and used.isdisjoint(states)


def _may_be_empty(asked: Asked, query: Query, table: TableKey, column: str | None) -> bool:
    if column is None or table != query.base:
        return False

    return asked.question.schema.column(table, column).nullable


def _marks_of_state(asked: Asked) -> Iterator[Mark]:
    for word in asked.question.words:
        if word.mark.means("noise") and word.mark.arg == _STATE:
            yield word.mark


def _states_cut(asked: Asked) -> list[str]:
    """Return words for a state that were cut in two: `在职工人` is no 职工."""
    found = []
    for first, second in pairwise(word.mark for word in asked.question.words):
        if first.end == second.start and first.means("noise"):
            found += _IN_STATE.findall(f"{first.text[-1:]}{second.text[:1]}")

    return found


def _telling_ends(asked: Asked, key: TableKey) -> list[tuple[TableKey, str]]:
    """Return the columns that tell whether a row of the table has ended."""
    table = asked.question.schema.table(key)
    return [(key, column.name) for column in table.columns if tells_end(column)]


def _restricted(query: Query) -> Iterator[tuple[TableKey, str]]:
    """Yield the columns that conditions of the query are about, whatever they are on."""
    yield from _columns(_conditions(query))
    for dimension in query.dimensions:
        if dimension.column is not None:
            yield dimension.table, dimension.column


def _conditions(query: Query) -> Iterator[Condition]:
    yield from query.conditions
    for measure in query.measures:
        yield from measure.share_of

    for related in query.related:
        yield from related.conditions

    for either in query.either:
        yield from _alternatives(either)


def _conditions_related(query: Query) -> Iterator[ColumnRef]:
    """Yield the columns of other tables than the base by which its rows are restricted."""
    for condition in _conditions(query):
        if condition.column.table != query.base:
            yield condition.column


def _alternatives(either: Either) -> Iterator[Condition]:
    yield from either.conditions
    for related in either.related:
        yield from related.conditions


def _columns(conditions: Iterable[Condition]) -> Iterator[tuple[TableKey, str]]:
    for condition in conditions:
        for column in condition.columns:
            yield column.table, column.column


def _refuse_shown_verbs(asked: Asked, query: Query) -> None:
    """Refuse to show when something was done where the question speaks of what was: "staff who
    left", `已付款的金额`.
    """
    question = asked.question
    if question.has("date_which") or any("which:when" in word.senses for word in question.words):
        return

    asked_of = set(_restricted(query))
    for column in asked.parts.columns:
        if column.link.quality >= _WHOLE_NAME or not question.is_date(column.link):
            continue

        mark = question.words[column.at].mark
        is_restricted = (column.link.table, str(column.link.column)) in asked_of
        is_shown_due_date = not is_restricted and is_due(question.column_of(column.link))
        if is_shown_due_date or _is_said_as_done(question.word_at(column.at - 1), mark):
            raise unused_words([mark.text])


def _refuse_shown_possessions(asked: Asked, query: Query) -> None:
    """Refuse to show what only some rows have: "which listeners work for a company"."""
    if query.measures:
        return

    for column in asked.parts.columns:
        before = asked.question.word_at(column.at - 1)
        is_one = before is not None and before.text.split()[-1] in _ARTICLES
        if is_one and _may_be_empty(asked, query, column.link.table, column.link.column):
            raise unused_words([asked.question.words[column.at].mark.text])


def _refuse_homes_of_others(asked: Asked, query: Query) -> None:
    """Refuse "who live in York" for those who have to do with a place or thing of York."""
    question = asked.question
    places = set(_restricted(query))
    lives = False
    for word in question.words:
        lives = lives or word.text.split()[0] in _LIVE
        value = word.link_as("val")
        if not lives or value is None or (value.table, value.column) not in places:
            continue
        if not question.facts(value.table).is_person:
            raise unused_words([word.mark.text])

        lives = False


def _is_said_as_done(before: Word | None, mark: Mark) -> bool:
    """Tell whether the word before a date's name makes it something done: `已付款`, "who left"."""
    if before is None:
        return False
    if before.text in _ALREADY:
        return True

    is_said_of = "which:person" in before.senses or before.text.lower() in _HAVE
    return is_said_of and mark.means("verb")


def _refuse_pieces_of_words(asked: Asked, query: Query) -> None:
    """Refuse a table by one character that ends a word: 供应商 has nothing to do with 商品."""
    tables = touched(query)
    for before, word in pairwise(asked.question.words):
        link = word.link_as("tab")
        if link is None or link.table not in tables or word.text not in _NOUN_ENDINGS:
            continue

        is_glued = before.mark.end == word.mark.start and before.noun is None
        if is_glued and (before.mark.is_unknown or before.mark.means("verb")):
            raise unused_words([f"{before.text}{word.text}"])


def _refuse_lost_comparisons(asked: Asked, query: Query) -> None:
    """Refuse one figure where two are compared: "compare sales between May and June"."""
    words = asked.question.texts("compare")
    has_one = bool(query.measures) and not query.dimensions and query.comparison is None
    if words and has_one and len(query.measures) == 1 and not query.measures[0].is_share:
        raise unused_words(words)


def _refuse_states_of_others(asked: Asked, query: Query) -> None:
    """Refuse a state of other rows where the word is also a date of those that are asked for.

    "members who have cancelled" are no members whose sessions were.
    """
    restricted = {column.table for column in _conditions_related(query)}
    for word in asked.question.words:
        date, value = word.link_as("dcol"), word.link_as("val")
        if date is None or value is None or date.table != query.base:
            continue
        if value.table != query.base and value.table in restricted:
            raise unused_words([word.text])


def _refuse_parts_of_others(asked: Asked, query: Query) -> None:
    """Refuse to list a column of a table that nothing names, by a part of its name.

    "attendance rate" is no hourly rate of teachers.
    """
    if query.measures or not asked.tables:
        return

    near = {query.base, *(table.link.table for table in asked.parts.tables)}
    near |= {dimension.table for dimension in (*query.dimensions, *query.top_per)}
    shown = [(column.at, column.link) for column in asked.parts.columns]
    shown += [(one.position, one.link) for one in asked.parts.bare if one.link is not None]
    for at, link in shown:
        if link.table not in near and link.quality < _WHOLE_NAME:
            raise unused_words([asked.question.words[at].mark.text])


def _refuse_dates_of_others(asked: Asked, query: Query) -> None:
    """Refuse a period of things where rows of theirs that are asked for have dates of their own.

    "pupils who were present in March" were enrolled before.
    """
    if not asked.question.facts(query.base).is_entity:
        return

    spans = [span for span in asked.parts.spans if span.link is None]
    is_dated_by_base = any(
        condition.operator == "during" and condition.column.table == query.base
        for condition in query.conditions
    )
    if not spans or not is_dated_by_base:
        return

    below = asked.question.graph.below(query.base)
    others = {one.table for one in query.related if not one.negated}
    others |= {
        condition.column.table for condition in query.conditions if condition.column.table in below
    }
    for table in others - {query.base}:
        if asked.event_date(table) is not None:
            raise unused_words([asked.question.words[spans[0].at].mark.text])


def _refuse_groups_of_nothing(asked: Asked, query: Query) -> None:
    """Refuse groups by a column that has to be empty: "per reason, those without one as well"."""
    grouped = {(dimension.table, dimension.column) for dimension in query.dimensions}
    for condition in query.conditions:
        column = condition.column
        if condition.operator == "null" and (column.table, column.column) in grouped:
            raise unused_words(asked.question.texts("null"))


def _refuse_shares_of_everything(asked: Asked, query: Query) -> None:
    """Refuse the share of rows that hold any of a column's values: "ratio of men and women"."""
    for measure in query.measures:
        for condition in measure.share_of:
            if asked.takes_all_values(condition):
                raise unused_words(asked.question.texts("share"))

        required = [one for one in measure.share_of if one.operator == "="]
        if len({one.column for one in required}) < len(set(required)):
            raise unused_words(asked.question.texts("share"))


def _refuse_alternatives_within(asked: Asked, query: Query) -> None:
    """Refuse an "or" of which it is not known how far it reaches.

    "prescribed drugs or creams below 10": the price may be that of both.
    """
    elsewhere = {
        (condition.column.table, condition.column.column) for condition in query.conditions
    }
    for either in query.either:
        about = set(_columns(_alternatives(either)))
        if len(about) > 1 and elsewhere & about:
            raise unused_words(asked.question.texts("or"))


def _refuse_kinds_of_values(asked: Asked) -> None:
    """Refuse to ask which of things there is, by a stored value: "which pilot reports …"."""
    question = asked.question
    for word in question.words:
        if "which:" not in word.senses:
            continue

        things = _things_behind(asked, word)
        values = [thing.text for thing in things if _is_only_value(thing)]
        if values and not any(map(_names_thing, things)):
            raise unused_words([word.text, *values])


def _things_behind(asked: Asked, word: Word) -> list[Word]:
    """Return the nouns that follow a word without another word between."""
    things = []
    for after in asked.question.words[word.at + 1 :]:
        if after.noun is None:
            break

        things.append(after)

    return things


def _names_thing(word: Word) -> bool:
    if "tab" in word.senses or "tcol" in word.senses:
        return True

    return word.mark.quality >= _WHOLE_NAME and not _is_only_value(word)


def _is_only_value(word: Word) -> bool:
    return "val" in word.senses and _THINGS.isdisjoint(word.senses)


def _refuse_moments_as_states(asked: Asked, query: Query) -> None:
    """Refuse "when was it booked" where "booked" is a state of things and the name of a date."""
    question = asked.question
    if not any("which:when" in word.senses for word in question.words):
        return

    restricted = {
        (condition.column.table, condition.column.column) for condition in query.conditions
    }
    for word in question.words:
        if word.noun is None or "dcol" not in word.senses:
            continue

        value = word.link_as("val")
        if value is not None and (value.table, value.column) in restricted:
            raise unused_words([word.text])


def _refuse_dates_as_things(asked: Asked) -> None:
    """Refuse a date as the group of each thing: "the average of each invoice" is of no day."""
    for group in asked.parts.groups:
        if group.dimension.bucket not in (None, "day"):
            continue

        word = _named_behind(asked, group.at)
        date, thing = word.link_as("dcol"), word.link_as("tab")
        if date is None or thing is None or date.column != group.dimension.column:
            continue
        if thing.quality > date.quality:
            raise unused_words([word.text])


def _named_behind(asked: Asked, place: int) -> Word:
    """Return the word at a place, or behind it where that only introduces a group: "each"."""
    word = asked.question.words[place]
    after = asked.question.word_at(place + 1)
    if word.noun is None and after is not None:
        return after

    return word


def _refuse_kinds_as_conditions(asked: Asked, query: Query) -> None:
    """Refuse groups by less than is named: "per ward the doctors, men and women"."""
    if not query.measures or not query.dimensions:
        return

    grouped = {(dimension.table, dimension.column) for dimension in query.dimensions}
    for condition in query.conditions:
        column = condition.column
        if (column.table, column.column) in grouped or not asked.takes_all_values(condition):
            continue

        values = set(map(str, condition.operands))
        raise unused_words([word.text for word in asked.question.words if _means(word, values)])


def _means(word: Word, values: set[str]) -> bool:
    link = word.link_as("val")
    return link is not None and str(link.value) in values


def _refuse_states_as_dates(asked: Asked, query: Query) -> None:
    """Refuse the date of another table where a word is a state of the rows that are counted.

    "bookings that were cancelled last year" are no bookings of members who have cancelled.
    """
    dated = {span.link.table for span in asked.parts.spans if span.link is not None}
    if dated <= {query.base}:
        return

    for word in asked.question.words:
        date, value = word.link_as("dcol"), word.link_as("val")
        if date is None or value is None or value.table != query.base:
            continue
        if date.table != query.base and date.table in dated:
            raise unused_words([word.text])


def _refuse_hours_of_others(asked: Asked, query: Query) -> None:
    """Refuse a time of day for a value of rows that nothing names.

    "results reported at night" are not those of people who work at night.
    """
    near = {query.base, *asked.question.named_tables()}
    restricted = set(_restricted(query))
    for word in asked.question.words:
        value = word.link_as("val")
        if value is None or value.table in near or word.text.lower() not in _TIMES_OF_DAY:
            continue
        if (value.table, value.column) in restricted:
            raise unused_words([word.text])


def _refuse_listed_groups(asked: Asked, query: Query) -> None:
    """Refuse to list what is grouped by: "women per ward" asks for a number, not which wards."""
    if query.measures or query.top_per:
        return

    above = asked.question.graph.above(query.base)
    others = [one for one in _conditions_related(query) if one.table not in above]
    for group in asked.parts.groups:
        if group.dimension.table == query.base and (others or query.related):
            raise unused_words([asked.question.words[group.at].text])
