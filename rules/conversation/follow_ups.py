"""Reads a question as a change to the one before it, and decides whether it is one.

A question that names what it wants is complete, whatever was said before. One that only has dates, values, groups, a
limit or an order needs the earlier question. Words such as 那, "what about" and "of those" make a complete question
continue the earlier one as well.
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
from rules.query.query import AGGREGATES, Figure
from rules.query.refusals import Refusal, unknown_words
from rules.query.years import dated, this_year
from rules.reading import comparing, grouping
from rules.reading.cover import readings
from rules.reading.inclusions import Inclusion, without_inclusion
from rules.reading.matching import Make
from rules.reading.parts import Named, Parts, Reading
from rules.reading.patterns import TABLE, compiled
from rules.reading.ranking import limit_of
from rules.reading.words import Match, Question, Word
from rules.schema.lexicon import Lexicon
from rules.schema.links import column_link
from rules.words import WORDS
from rules.words.talk import THANKS, without_courtesy
from rules.words.vocabulary import FOLLOW_UP_INTENTS

_HOW_MUCH = frozenset(WORDS.both("questions.how_much"))
_RECORDS = frozenset(WORDS.both("questions.rows"))

# ------------------------------------------------------------------------------------------------------------ patterns


def _limited(match: Match) -> Parts | None:
    """A number that belongs to nothing else: `只要10个`, "just 5 of them"; "one more" is no limit."""
    limit, is_date = limit_of(match), "date" in match["num"].word.senses
    cues = {other.mark.arg for other in match.question.words if other.mark.means("noise")}
    said = match.get("unit", "noise") is not None or cues & {"only", "replace"}
    return Parts(limits=(limit,)) if limit is not None and limit > 1 and said and not is_date else None


def _lifted(match: Match) -> Parts:
    """Conditions that are taken away: `去掉状态条件`, "remove the status filter"."""
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
    """What the question may say itself, the likeliest first; the rest stays as in the earlier question.

    Args:
        context: the tables of the earlier question, with their weights.
        year: completes months and quarters that are said without a year.

    Raises:
        Refusal: a word names nothing, or asks for what rules can't do.
    """
    text = THANKS.sub("", question) or question
    is_chinese = language_of(without_courtesy(question)) == "zh"
    marks = dated(marks_of(text, lexicon, FOLLOW_UP_INTENTS), settled.year or year, is_chinese)
    marks, inclusion = without_inclusion(marks)
    nouns = nouns_of(marks, lexicon, hint, context)
    read = Question(marks, nouns, lexicon, is_chinese=is_chinese, settled=settled)
    found = readings(read, _PATTERNS)
    unknown = [marks[at].text for at in found[0].lost if marks[at].is_unknown]
    if unknown:
        notes_on_values(Asked(read, found[0].parts))
        raise unknown_words(unknown, lexicon)
    return [_change(read, one, inclusion) for one in found]


def likely_change(question: str, lexicon: Lexicon, hint: str | None) -> Change | Refusal:
    """The likeliest reading of a question before it is known what it continues; or why there is none."""
    try:
        change = read_change(question, lexicon, hint, year=this_year(language_of(question) == "zh"))[0]
        notes_on_values(change.asked)
        return change
    except Refusal as refusal:
        return refusal.copy()


def goes_on(change: Change | Refusal, question: str, stands_alone: Callable[[], bool]) -> bool:
    """Whether a question continues the one before it; `stands_alone` says whether it is complete by itself."""
    if isinstance(change, Refusal) or change.reading.lost or not (change.has_slots or change.has_subject):
        return False
    if change.counts_value:
        return bool((change.cues | change.ties) & _TIES) or not stands_alone()
    if not change.has_subject:
        names_rows = change.parts.labels or any(one.conditions for one in change.parts.related)
        if names_rows and not change.ties and stands_alone():
            return False  # the table is named by its rows: `不是营业中的服务区`
        return change.has_slots and not _is_small_talk(change, question)
    if "these" in change.cues:
        return True
    if change.asks or (change.is_half_ranked and not change.ties):
        return bool(change.ties & {"lead", "end"}) or (change.is_half_ranked and not stands_alone())
    if change.ties == {"only"}:
        return change.restricts or bool(change.parts.columns or change.figures)
    return bool(change.ties)


_TIES = frozenset({"lead", "end", "these", "replace", "add", "only"})
_SECOND_PERSON = WORDS.found("talk.citu.to_anybody")


def _is_small_talk(change: Change, question: str) -> bool:
    """Whether a question with nothing but a date or "all" asks for no data: `See you tomorrow`."""
    parts = change.parts
    says_more = parts.conditions or parts.thresholds or parts.related or parts.groups or parts.rankings or parts.limits
    return not says_more and not change.cues & _TIES and bool(_SECOND_PERSON.search(question))


# --------------------------------------------------------------------------------------------------------------- cues

_ADDING_JOINTS = frozenset(WORDS.both("questions.adding"))
_PRONOUNS = frozenset(WORDS.both("questions.pointing.pronouns"))  # of one thing
_AND_THEIR = frozenset(WORDS.both("follow_ups_begin.and_their"))
_TRAILING = frozenset({"end", "replace", "add", "these"})


def _change(question: Question, reading: Reading, inclusion: Inclusion | None) -> Change:
    cues, ties = _cues(question, reading)
    change = Change(Asked(question, reading.parts), reading, cues, ties, inclusion=inclusion)
    _say_function(change)
    _say_tie(change)
    _say_direction(change)
    _say_settled(change)
    return change


def _cues(question: Question, reading: Reading) -> tuple[set[str], frozenset[str]]:
    words = question.words
    said = [one for one in words if one.mark.means("noise") and one.mark.arg]
    said = [one for one in said if one.noun is None or one.at not in reading.taken]
    opening = next((word.at for word in words if not _opens(word.mark)), len(words))
    ties = {one.mark.arg for one in said if one.at < opening or _is_of_shown(one, words[: one.at])}
    ties |= {one.mark.arg for one in said if one.at == len(words) - 1} & _TRAILING
    ties = {"these" if arg == "their" else arg for arg in ties}
    joints = list(itertools.takewhile(lambda word: word.mark.means("and", "or"), words))
    if joints:
        adds = any(word.text in _ADDING_JOINTS or word.mark.means("or") for word in joints)
        ties.add("add" if adds else "lead")
    if words and words[0].text in _AND_THEIR:
        ties.add("these")
    misplaced = {"lead", "end", "their"} - ties
    return ({one.mark.arg for one in said} | ties) - misplaced, frozenset(ties & _TIES)


def _is_of_shown(word: Word, before: Sequence[Word]) -> bool:
    """Whether "their" is of what was shown, because the question has named nothing yet."""
    if word.mark.arg != "their" or word.text in _PRONOUNS:
        return False
    return not any(one.noun is not None or one.mark.links or one.mark.date is not None for one in before)


def _opens(mark: Mark) -> bool:
    """Whether a mark may stand before the first word with a meaning."""
    return mark.means("noise", "and", "or", "list", "with") and not mark.links


def _say_tie(change: Change) -> None:
    """Reads words that restrict something said before, though no cue says so.

    They ask "how many are" so, begin with a preposition ("from customers in Berlin") or with what is left out ("exclude
    cancelled orders"), or have a 的 that no noun follows.
    """
    words, parts = change.asked.question.words, change.parts
    if not change.restricts or change.figures or parts.rankings or parts.groups or change.asks:
        return
    first = words[0]
    leads = first.mark.means("from", "with") or first.text in _PREPOSITIONS or first.mark.arg == "out"
    pairs = list(itertools.pairwise(words))
    ends = any(one.text in _OF and (after.mark.means("count") or after.mark.arg == "end") for one, after in pairs)
    asks_of = any(one.mark.means("count") and after.noun is None and after.text in _COPULAS for one, after in pairs)
    if leads or ends or asks_of or words[-1].text in _OF:
        change.ties |= {"these"}


_OF = WORDS.chinese.phrases("names.of")


_COPULAS = frozenset(WORDS.both("follow_ups_begin.copulas"))
_PREPOSITIONS = frozenset(WORDS.both("follow_ups_begin.prepositions"))


def _say_function(change: Change) -> None:
    """Reads aggregates and counts that name no column."""
    question, parts = change.asked.question, change.parts
    counting = {word.at for word in question.words if word.noun is None and word.mark.means("count")}
    named = tuple(one for one in parts.figures if one.position not in counting)
    if len(named) < len(parts.figures):
        change.function, change.counts_value = "count", _counts_value(question)
        change.asked = change.asked.with_parts(figures=named)
        return
    words = [word for word in question.words if word.mark.means("count") and word.text not in _HOW_MUCH]
    said = [AGGREGATES[flag] for flag in parts.flags if flag in AGGREGATES]
    if change.asked.says("how_many") and not change.figures and (words or not said):
        change.function, change.counts_value = "count" if words else None, _counts_value(question)
    elif said and parts.bare:
        first = replace(parts.bare[0], function=said[0])
        change.asked = change.asked.with_parts(bare=(first, *parts.bare[1:]))
    elif said:
        change.function = said[0]
    elif change.is_figure_alone and all(word.mark.means("sum", "noise") for word in question.words):
        change.function = "sum"  # "total" by itself adds up what was shown, though a column may go by that word
        change.asked = change.asked.with_parts(bare=())


def _counts_value(question: Question) -> bool:
    """Whether a count that names no table counts rows with a value, or just rows."""
    records = any(word.text in _RECORDS for word in question.words)
    return records or any(word.noun is not None and word.noun.is_value for word in question.words)


def _say_direction(change: Change) -> None:
    """Reads an order that names no column: 升序, "sort ascending"."""
    parts, words = change.parts, change.asked.question.words
    columns = [one.dimension for one in parts.groups if one.dimension.column is not None]
    ranking = change.ranking
    if ranking is None or not ranking.is_order or ranking.figure is not None or ranking.hint:
        return
    if len(columns) == len(parts.groups) == 1:  # "by" in "sorted by opening date" is no group
        figure = Figure(None, column_link(columns[0].table, str(columns[0].column)), position=ranking.at)
        change.asked = change.asked.with_parts(groups=(), rankings=(replace(ranking, figure=figure),))
        return
    said = [word.mark.arg for word in words if word.mark.means("rank") and word.mark.arg]
    if said or "reverse" not in change.cues:
        change.direction = said[-1] if said else "desc"
    change.asked = change.asked.with_parts(rankings=())


def _say_settled(change: Change) -> None:
    """Puts the figure that the user has chosen into the ranking, or among the measures without one."""
    figure, ranking = change.asked.question.settled.figure, change.ranking
    if figure is None:
        return
    if ranking is not None:
        ranking = replace(ranking, figure=replace(figure, position=ranking.at), hint="")
        change.asked = change.asked.with_parts(rankings=(ranking,))
    else:
        bare = replace(figure, function=figure.function or change.function)
        change.asked = change.asked.with_parts(bare=(*change.parts.bare, bare))
        change.function = None
