"""Reads a question as a change to the one before it, and decides whether it is one.

A question that names what it wants is complete, whatever was said before. One that only has dates,
values, groups, a limit or an order needs the earlier question. Words such as 那, "what about" and
"of those" make a complete question continue the earlier one as well.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from common.meanings import TableKey
from common.text import language_of
from rules.composing.asked import Asked
from rules.composing.assumptions import notes_on_values
from rules.conversation.change import Change
from rules.linking.linking import nouns_of
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.query.pending import NOTHING_SETTLED, Settled
from rules.query.query import AGGREGATES, Figure, Function
from rules.query.refusals import Refusal, refuse_too_long, unknown_parts, unknown_words
from rules.query.years import this_year, with_missing_years
from rules.reading import comparing, grouping
from rules.reading.cover import readings
from rules.reading.inclusions import Inclusion, without_inclusion
from rules.reading.matching import Make
from rules.reading.parts import Named, Parts, Reading
from rules.reading.patterns import TABLE, compiled
from rules.reading.ranking import limit_of
from rules.reading.words import Match, QuestionWords, Word
from rules.schema.lexicon import Lexicon
from rules.schema.links import Link, column_link
from rules.words import WORDS
from rules.words.talk import THANKS, without_courtesy
from rules.words.vocabulary import FOLLOW_UP_INTENTS

_HOW_MUCH = frozenset(WORDS.both("questions.how_much"))
_RECORDS = frozenset(WORDS.both("questions.rows"))

# ------------------------------------------------------------------------------
# patterns


def _limited(match: Match) -> Parts | None:
    """Read a number that belongs to nothing else: `只要10个`, "just 5 of them".

    "one more" is no limit.
    """
    limit = limit_of(match)
    if limit is None or limit <= 1:
        return None
    if "date" in match["num"].word.senses:
        return None
    if match.get("unit", "noise") is None:
        noise = [word.mark for word in match.question.words if word.mark.means("noise")]
        cues = {mark.arg for mark in noise}
        if not cues & {"only", "replace"}:
            return None

    return Parts(limits=(limit,))


def _lifted(match: Match) -> Parts:
    """Read conditions that are taken away: `去掉状态条件`, "remove the status filter"."""
    item = match["tcol|dcol|mcol|tab|flag"]
    return Parts(columns=(Named(item.first, item.link),), flags=("lifts",))


_TABLE: tuple[tuple[str, float, Make], ...] = (
    ("num >unit|noise", 0.7, _limited),
    ("num", 1.0, _limited),
    ("not|noise:all tcol|dcol|mcol|tab|flag noise:filter", 0.2, _lifted),
    ("not noise:filter", 0.2, Parts(flags=("lifts",))),
    ("avg_per", 0.6, lambda match: Parts(flags=(f"per_unit:{match['avg_per'].arg}",))),
    ("count cmp:=? {compared}", 0.5, comparing.threshold),
    ("by {group} by", 0.3, grouping.groups),
    *((kind, 0.8, Parts(flags=(kind,))) for kind in ("max", "min", "median", "stddev")),
)
_PATTERNS = compiled(TABLE, _TABLE)


def read_change(
    question: str,
    lexicon: Lexicon,
    hint: str | None = None,
    context: Mapping[TableKey, float] | None = None,
    year: str = "",
    settled: Settled = NOTHING_SETTLED,
) -> list[Change]:
    """Read the question as a change to an earlier one; return the readings, the likeliest first.

    Args:
        context: the tables of the earlier question, with their weights.
        year: completes months and quarters that are said without a year.

    Raises:
        Refusal: a word names nothing, or asks for what rules can't do.
    """
    text = THANKS.sub("", question) or question
    is_chinese = language_of(without_courtesy(question)) == "zh"
    marks = marks_of(text, lexicon, FOLLOW_UP_INTENTS)
    refuse_too_long(question, marks)
    marks = with_missing_years(marks, settled.year or year, is_chinese)
    marks, inclusion = without_inclusion(marks)
    nouns = nouns_of(marks, lexicon, hint, context)
    read = QuestionWords(marks, nouns, lexicon, is_chinese=is_chinese, settled=settled)
    found = readings(read, _PATTERNS)
    unknown = unknown_parts(marks, found[0].lost)
    if unknown:
        notes_on_values(Asked(read, found[0].parts))
        raise unknown_words(unknown, lexicon)

    return [_change(read, one, inclusion) for one in found]


def likely_change(question: str, lexicon: Lexicon, hint: str | None) -> Change | Refusal:
    """Return the likeliest change that a question says, or why there is none.

    It is read before it is known which question it continues.
    """
    year = this_year(language_of(question) == "zh")
    try:
        change = read_change(question, lexicon, hint, year=year)[0]
        notes_on_values(change.asked)
        return change
    except Refusal as refusal:
        return refusal.copy()


def goes_on(change: Change | Refusal, question: str, stands_alone: Callable[[], bool]) -> bool:
    """Tell whether a question continues the one before it.

    Args:
        stands_alone: tells whether the question is complete by itself; called only when needed,
            because it takes reading the question once more.
    """
    if isinstance(change, Refusal) or change.reading.lost:
        return False
    if not change.has_slots and not change.has_subject:
        return False
    if change.counts_value:
        refers_back = bool((change.cues | change.ties) & _TIES)
        return refers_back or not stands_alone()

    if not change.has_subject:
        return _goes_on_without_subject(change, question, stands_alone)

    return _goes_on_with_subject(change, stands_alone)


_TIES = frozenset({"lead", "end", "these", "replace", "add", "only"})
_SECOND_PERSON = WORDS.found("talk.citu.to_anybody")


def _goes_on_without_subject(
    change: Change, question: str, stands_alone: Callable[[], bool]
) -> bool:
    if not change.has_slots or _is_small_talk(change, question):
        return False
    if change.ties:
        return True

    related = [one.conditions for one in change.parts.related]
    names_rows = bool(change.parts.labels) or any(related)
    # the table may be named by its rows: `不是营业中的服务区`
    return not names_rows or not stands_alone()


def _goes_on_with_subject(change: Change, stands_alone: Callable[[], bool]) -> bool:
    """Tell whether a question is about the rows of the one before, by the words that tie it."""
    if "these" in change.cues:
        return True

    is_half_ranked = change.is_half_ranked
    ranks_untied = is_half_ranked and not change.ties
    if change.asks or ranks_untied:
        if change.ties & {"lead", "end"}:
            return True

        return is_half_ranked and not stands_alone()

    if change.ties == {"only"}:
        return any((change.restricts, change.figures, change.parts.columns))

    return bool(change.ties)


def _is_small_talk(change: Change, question: str) -> bool:
    """Tell whether a question with nothing but a date or "all" asks for no data.

    `See you tomorrow` is such a one.
    """
    parts = change.parts
    asked_for = (
        parts.conditions,
        parts.thresholds,
        parts.related,
        parts.groups,
        parts.rankings,
        parts.limits,
        change.cues & _TIES,
    )
    return not any(asked_for) and _SECOND_PERSON.search(question) is not None


# ------------------------------------------------------------------------------
# cues

_ADDING_JOINTS = frozenset(WORDS.both("questions.adding"))
_PRONOUNS = frozenset(WORDS.both("questions.back_references.pronouns"))  # of one thing
_AND_THEIR = frozenset(WORDS.both("follow_ups_begin.and_their"))
_TRAILING = frozenset({"end", "replace", "add", "these"})


def _change(question: QuestionWords, reading: Reading, inclusion: Inclusion | None) -> Change:
    cues, ties = _cues(question, reading)
    change = Change(Asked(question, reading.parts), reading, cues, ties, inclusion=inclusion)
    _read_function(change)
    _read_tie(change)
    _read_direction(change)
    _insert_settled_figure(change)
    return change


def _cues(question: QuestionWords, reading: Reading) -> tuple[set[str], frozenset[str]]:
    """Return the cues anywhere in the question, and those at its begin or end that tie it to
    another.
    """
    cue_words = _cue_words(question, reading)
    ties = _ties_of_cues(question, cue_words) | _ties_of_first_words(question)
    misplaced = {"lead", "end", "their"} - ties
    cues = {cue_word.mark.arg for cue_word in cue_words} | ties
    return cues - misplaced, frozenset(ties & _TIES)


def _cue_words(question: QuestionWords, reading: Reading) -> list[Word]:
    """Return the words that refer to an earlier question, and are not read as a name."""
    words = []
    for word in question.words:
        is_cue = word.mark.means("noise") and bool(word.mark.arg)
        is_name = word.noun is not None and word.at in reading.taken
        if is_cue and not is_name:
            words.append(word)

    return words


def _ties_of_cues(question: QuestionWords, cue_words: Sequence[Word]) -> set[str]:
    words = question.words
    leading = list(itertools.takewhile(lambda word: _may_lead(word.mark), words))
    last = len(words) - 1
    ties = set()
    for word in cue_words:
        is_leading = word.at < len(leading)
        is_trailing = word.at == last and word.mark.arg in _TRAILING
        if is_leading or is_trailing or _is_of_shown(word, words[: word.at]):
            ties.add(word.mark.arg)

    if "their" in ties:
        ties.remove("their")
        ties.add("these")

    return ties


def _ties_of_first_words(question: QuestionWords) -> set[str]:
    """Return the ties of "and", "or" and "and their" at the question's begin."""
    words = question.words
    ties = set()
    joints = list(itertools.takewhile(lambda word: word.mark.means("and", "or"), words))
    if joints:
        adds = any(word.text in _ADDING_JOINTS or word.mark.means("or") for word in joints)
        ties.add("add" if adds else "lead")

    if words and words[0].text in _AND_THEIR:
        ties.add("these")

    return ties


def _is_of_shown(word: Word, before: Sequence[Word]) -> bool:
    """Tell whether "their" is of what was shown, because the question has named nothing yet."""
    if word.mark.arg != "their":
        return False
    if word.text in _PRONOUNS:
        return False

    return not any(map(_names_something, before))


def _names_something(word: Word) -> bool:
    return any((word.noun, word.mark.links, word.mark.date))


def _may_lead(mark: Mark) -> bool:
    """Tell whether a mark may stand before the first word with a meaning."""
    if mark.links:
        return False

    return mark.means("noise", "and", "or", "list", "with")


_OF = WORDS.chinese.phrases("names.of")
_COPULAS = frozenset(WORDS.both("follow_ups_begin.copulas"))
_PREPOSITIONS = frozenset(WORDS.both("follow_ups_begin.prepositions"))


def _read_tie(change: Change) -> None:
    """Read words that restrict something said before, though no cue says so.

    They ask "how many are" so, begin with a preposition ("from customers in Berlin") or with what
    is left out ("exclude cancelled orders"), or have a 的 that no noun follows.
    """
    if not change.restricts:
        return

    others = (change.figures, change.asks, change.parts.rankings, change.parts.groups)
    if any(others):
        return

    words = change.asked.question.words
    lacks_noun = any(itertools.starmap(_lacks_noun_between, itertools.pairwise(words)))
    if lacks_noun or words[-1].text in _OF or _begins_with_preposition(words):
        change.ties |= {"these"}


def _begins_with_preposition(words: Sequence[Word]) -> bool:
    first = words[0]
    if first.mark.means("from", "with"):
        return True

    return first.mark.arg == "out" or first.text in _PREPOSITIONS


def _lacks_noun_between(word: Word, after: Word) -> bool:
    """Tell whether two words leave out the noun between them: `的有几个`, "how many are"."""
    if word.text in _OF:
        return after.mark.means("count") or after.mark.arg == "end"
    if after.noun is not None:
        return False

    return word.mark.means("count") and after.text in _COPULAS


def _read_function(change: Change) -> None:
    """Read aggregates and counts that name no column."""
    if _read_count_of_rows(change):
        return

    question = change.asked.question
    flags = filter(AGGREGATES.__contains__, change.parts.flags)
    aggregates = [AGGREGATES[flag] for flag in flags]
    words_of_counting = {text.lower() for text in question.texts("count")}
    counts = not words_of_counting <= _HOW_MUCH
    asks_how_many = change.asked.says("how_many") and not change.figures
    if asks_how_many and (counts or not aggregates):
        change.function = "count" if counts else None
        change.counts_value = _counts_value(question)
    elif aggregates:
        _apply_aggregate(change, aggregates[0])
    elif _is_mere_total(change):
        change.function = "sum"
        change.asked = change.asked.with_parts(bare=())


def _apply_aggregate(change: Change, function: Function) -> None:
    """Give the aggregate to the first figure that is named, else to the earlier one."""
    bare = change.parts.bare
    if not bare:
        change.function = function
        return

    first = replace(bare[0], function=function)
    change.asked = change.asked.with_parts(bare=(first, *bare[1:]))


def _read_count_of_rows(change: Change) -> bool:
    """Read figures that are only a word such as "how many"; tell whether there are any."""
    question, figures = change.asked.question, change.parts.figures
    counting = {
        word.at for word in question.words if word.noun is None and word.mark.means("count")
    }
    named = tuple(figure for figure in figures if figure.position not in counting)
    if len(named) == len(figures):
        return False

    change.function = "count"
    change.counts_value = _counts_value(question)
    change.asked = change.asked.with_parts(figures=named)
    return True


def _is_mere_total(change: Change) -> bool:
    """Tell whether the question is only "total", though a column may go by that word."""
    words = change.asked.question.words
    return change.is_figure_alone and all(word.mark.means("sum", "noise") for word in words)


def _counts_value(question: QuestionWords) -> bool:
    """Tell whether a count that names no table counts rows with a value, or just rows."""
    for word in question.words:
        if word.text in _RECORDS:
            return True
        if word.noun is not None and word.noun.is_value:
            return True

    return False


def _read_direction(change: Change) -> None:
    """Read an order that names no column: 升序, "sort ascending"."""
    ranking = change.ranking
    if ranking is None or not ranking.is_order:
        return
    if ranking.figure is not None or ranking.hint:
        return

    column = _only_group_column(change.parts)
    if column is not None:
        # "by" in "sorted by opening date" is no group
        figure = Figure(None, column, position=ranking.at)
        ordered = replace(ranking, figure=figure)
        change.asked = change.asked.with_parts(groups=(), rankings=(ordered,))
        return

    change.asked = change.asked.with_parts(rankings=())
    order_words = [word for word in change.asked.question.words if word.mark.means("rank")]
    directions = [word.mark.arg for word in order_words if word.mark.arg]
    if directions:
        change.direction = directions[-1]
    elif "reverse" not in change.cues:
        change.direction = "desc"


def _only_group_column(parts: Parts) -> Link | None:
    if len(parts.groups) != 1:
        return None

    dimension = parts.groups[0].dimension
    if dimension.column is None:
        return None

    return column_link(dimension.table, dimension.column)


def _insert_settled_figure(change: Change) -> None:
    """Put the figure that the user has chosen into the ranking, else among the figures."""
    figure, ranking = change.asked.question.settled.figure, change.ranking
    if figure is None:
        return
    if ranking is not None:
        ranking = replace(ranking, figure=replace(figure, position=ranking.at), hint="")
        change.asked = change.asked.with_parts(rankings=(ranking,))
        return

    bare = replace(figure, function=figure.function or change.function)
    change.asked = change.asked.with_parts(bare=(*change.parts.bare, bare))
    change.function = None
