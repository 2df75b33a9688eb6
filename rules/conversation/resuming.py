"""Reads the answer to a question back: "heaviest shipment" → "by which figure?" → "total weight"."""

import re
from dataclasses import replace

from rules.conversation.change import Change
from rules.conversation.follow_ups import read_change
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.query.pending import Choice, Missing, Settled
from rules.query.query import Figure
from rules.query.refusals import Refusal
from rules.query.years import in_year_of, year_of_period
from rules.schema.lexicon import Lexicon
from rules.words import WORDS

_LEAD = re.compile(
    rf"^(?:{WORDS.any_of('questions.answers.leads')})\s*(?:{WORDS.english.text('questions.answers.article')} )?",
    re.IGNORECASE,
)
_PASSED = ("noise", "of", "unit", "by", "which", "and", "list")


def settled_by(said: str, missing: Missing, settled: Settled, lexicon: Lexicon, is_chinese: bool) -> Settled | None:
    """`settled` with what `said` answers about what is `missing`; None if it says something else.

    Args:
        is_chinese: whether the question that was asked back is.
    """
    answer = _LEAD.sub("", said.strip())
    if missing.kind == "figure":
        figure = _figure(answer, missing, lexicon)
        return replace(settled, figure=figure) if figure is not None else None
    marks = [mark for mark in marks_of(answer, lexicon) if mark.links or mark.date or not mark.means(*_PASSED)]
    if missing.kind == "year":
        year = _year(marks, missing.word, is_chinese)
        return replace(settled, year=year) if year else None
    choice = _choice(marks, missing.choices)
    return replace(settled, chosen=(*settled.chosen, choice)) if choice is not None else None


def _figure(answer: str, missing: Missing, lexicon: Lexicon) -> Figure | None:
    """The figure, if the answer names one and nothing else; None for a question."""
    context = {table: 1.0 for table, _ in missing.choices}
    try:
        change = read_change(answer, lexicon, context=context)[0]
    except Refusal:
        return None
    asks = answer.endswith(("?", "？")) or change.asked.question.has("which", "list")
    if len(change.figures) != 1 or asks or _says_more(change) or change.reading.lost:
        return None
    return replace(change.figures[0], position=0)


def _says_more(change: Change) -> bool:
    """Whether the answer says more than a figure."""
    measured = {figure.table or (figure.link and figure.link.table) for figure in change.figures}
    others = {one.link.table for one in change.asked.tables} - measured
    return change.has_slots or change.asks or bool(others or change.parts.columns or change.ties)


def _year(marks: list[Mark], word: str, is_chinese: bool) -> str:
    """The year that the answer names, alone or with the month or quarter `word`."""
    date = marks[0].date if len(marks) == 1 else None
    if date is None or not date.is_known:
        return ""
    is_year = date.period.grain == "year" or in_year_of(date.period, word, is_chinese) == date.period
    return year_of_period(date.period, is_chinese) if is_year else ""


def _choice(marks: list[Mark], choices: tuple[Choice, ...]) -> Choice | None:
    """The one of the choices that the answer names best."""
    named = [(link.quality, (link.table, link.column)) for mark in marks for link in mark.links if link.kind != "value"]
    found = sorted((quality, choices.index(choice)) for quality, choice in named if choice in choices)
    if not found or any(not any((link.table, link.column) in choices for link in mark.links) for mark in marks):
        return None
    best = {choice for quality, choice in found if quality == found[-1][0]}
    return choices[best.pop()] if len(best) == 1 else None
