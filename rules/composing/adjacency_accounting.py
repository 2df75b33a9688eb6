"""Refuses statements that join words which only stand side by side, or that read "not yet shipped"
as any other state.
"""

from collections.abc import Iterator
from itertools import pairwise

from common.meanings import TableKey
from knowledge.language.spoken_names import called
from rules.composing.asked import Asked
from rules.query.query import Condition, Query
from rules.query.refusals import unclear_status, unused_words
from rules.reading.words import ColumnIdentity, QuestionWords, Word
from rules.schema.links import Link
from rules.words import WORDS

_JOINTS = ("and", "or", "compare", "to")
_TWO_STATES = 2
_NOT_YET = frozenset(WORDS.both("questions.not_yet"))
_HAVE = frozenset(WORDS.english.phrases("questions.have"))
_WITHIN = WORDS.chinese.phrases("questions.within")
_FINAL = frozenset(WORDS.both("questions.final"))
_EXCLUDING = ("!=", "not in")


def refuse_misplaced(asked: Asked, query: Query) -> None:
    """Refuse a query that reads more into words side by side, or into "not yet", than they say.

    Raises:
        Refusal: names the words, or asks what they mean.
    """
    _refuse_values_beside(asked, query)
    _refuse_numbers_beside(asked)
    _refuse_lengths_as_limits(asked, query)
    _ask_undone_states(asked, query)


def _refuse_values_beside(asked: Asked, query: Query) -> None:
    """Refuse to take values of one column that nothing joins for alternatives: "web kiosk sales".

    By groups they are all meant: `大床房双床房各有多少`.
    """
    grouped = {(dimension.table, dimension.column) for dimension in query.dimensions}
    links_by_place = dict(asked.parts.said)
    for run in _runs(asked.question, sorted(links_by_place)):
        column = links_by_place[run[0]].table, links_by_place[run[0]].column
        if column not in grouped:
            raise unused_words([asked.question.words[at].mark.text for at in run])


def _runs(question: QuestionWords, places: list[int]) -> Iterator[list[int]]:
    """Yield the places of values of one column that stand side by side, joined by no word."""
    run: list[int] = []
    for at in places:
        if run and not _is_beside(question, run[-1], at):
            yield from _unjoined(question, run)
            run = []

        run.append(at)

    yield from _unjoined(question, run)


def _unjoined(question: QuestionWords, run: list[int]) -> Iterator[list[int]]:
    if len(run) > 1 and not question.means(run[-1] + 1, *_JOINTS):
        yield run


def _is_beside(question: QuestionWords, first: int, other: int) -> bool:
    """Tell whether two values of one column stand side by side, with at most `的` between."""
    of_first, of_other = (question.words[at].link_as("val") for at in (first, other))
    if of_first is None or of_other is None or not _are_of_one_column(of_first, of_other):
        return False

    stretch = question.words[first : other + 1]
    if not all(word.mark.means("of") for word in stretch[1:-1]):
        return False

    return all(one.mark.end == two.mark.start for one, two in pairwise(stretch))


def _are_of_one_column(first: Link, other: Link) -> bool:
    return (first.table, first.column) == (other.table, other.column)


def _refuse_numbers_beside(asked: Asked) -> None:
    """Refuse a second number of rows: "the 3 cheapest tickets of 2 vessels"."""
    limits = [*asked.parts.limits]
    limits += [ranking.limit for ranking in asked.parts.rankings if ranking.limit is not None]
    if len(limits) < 2:
        return

    numbers = []
    for word in asked.question.words:
        number = word.mark.number
        if number is not None and number.value in limits:
            numbers.append(word.mark.text)

    raise unused_words(numbers)


def _refuse_lengths_as_limits(asked: Asked, query: Query) -> None:
    """Refuse so many rows for a length of time: `发货后三个月内退书的有多少笔`."""
    if query.limit is None:
        return

    for number, unit in pairwise(asked.question.words):
        after = asked.question.word_at(unit.at + 1)
        is_length = number.mark.number is not None and unit.mark.means("bucket", "date_part")
        if is_length and after is not None and after.text.startswith(_WITHIN):
            raise unused_words([f"{number.mark.text}{unit.mark.text}"])


def _ask_undone_states(asked: Asked, query: Query) -> None:
    """Ask which states "not yet shipped" means where there are several others.

    Those that come after it, such as "delivered", are not meant, and nothing tells the order.

    Raises:
        Refusal: names the states.
    """
    excluded: dict[ColumnIdentity, Condition] = {
        (condition.column.table, condition.column.column): condition
        for condition in query.conditions
        if condition.operator in _EXCLUDING
    }
    for word in asked.question.words:
        value = word.link_as("val")
        if value is None or (value.table, value.column) not in excluded:
            continue
        if word.text in _FINAL:
            continue

        if _is_not_yet(asked.question, word.at) or _is_date_too(word, value):
            _ask_which_state(asked, value.table, excluded[value.table, value.column])


def _is_not_yet(question: QuestionWords, place: int) -> bool:
    """Tell whether words such as "have not been" or "no longer" stand before a state."""
    before = question.word_at(place - 1)
    while before is not None and before.noun is None and before.mark.means("not", "noise"):
        if before.text in _NOT_YET:
            return True

        before = question.word_at(before.at - 1)

    # "that have not …"
    return before is not None and before.text in _HAVE and question.means(before.at + 1, "not")


def _is_date_too(word: Word, value: Link) -> bool:
    """Tell whether a state is also the name of a date, which tells when it was reached."""
    date = word.link_as("dcol")
    return date is not None and date.table == value.table


def _ask_which_state(asked: Asked, table: TableKey, condition: Condition) -> None:
    column = asked.question.schema.column(table, condition.column.column)
    others = [value for value in column.values if value not in condition.operands]
    if len(others) >= _TWO_STATES:
        states = [str(operand) for operand in condition.operands]
        raise unclear_status(states, called(column), others)
