"""Whether a question is about the connected database, judged by its words and the database's own."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import get_args

from common.inquiry import Inquiry
from common.text import Text
from common.values import ANALYSIS_KINDS, AnalysisKind, Classification
from rules.answering.about_results import asked_of_last
from rules.conversation.conversation import continues, is_understood, written_operation
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.query.refusals import in_quotes, similar_names
from rules.schema.lexicon import lexicon_for
from rules.words import WORDS
from rules.words.result_questions import Course, Doubt
from rules.words.statements import pasted_sql
from rules.words.talk import ABOUT_CITU, SMALL_TALK, signs_of_talk
from rules.words.vocabulary import Kind

_FIGURES: tuple[Kind, ...] = (
    "count", "sum", "avg", "avg_per", "max", "min", "share", "each", "by", "bucket", "trend", "super", "rank", "top",
    "cmp", "between", "null", "notnull", "date_which", "per_entity", "above_average", "below_average", "compare",
)  # fmt: skip
_DATA_INTENTS: tuple[Kind, ...] = (*_FIGURES, "list", "which", "distinct")
_CLEAR_QUALITY = 0.6

_TO_CITU = WORDS.found("talk.citu.to")
_THANKS, _TO_SOMEBODY = WORDS.opens("talk.small.thanks"), WORDS.found("talk.citu.to_somebody")
_GOES_ON = re.compile(r"[,，.。!！;；、]\s*\w")
_GENERAL = WORDS.found("talk.general.subjects")
# Confidence of a verdict that the rules are not sure of: low enough that a model is asked, if there is one.
_DOUBTFUL, _LIKELY = 0.5, 0.55
_ORDERED = frozenset(WORDS.both("talk.citu.ordered"))
_NO_FIGURES = ("=", "+date", "-date")  # 是 and 最近 are said of anything
# What computing may answer. A reason it can't give, but it tells when a figure changed, and who had a part in it.
_COMPUTED = tuple(kind for kind in ANALYSIS_KINDS if kind != "forecast")
_TOLD_BY: Mapping[Doubt | Course, tuple[AnalysisKind, ...]] = {
    "why": _COMPUTED[1:],
    "meaning": _COMPUTED,
    "trend": ("change", "outliers"),
    "change": ("change",),
    "outlook": ("forecast",),
}
_OPERATION = Text("问题是 SQL 语句或针对数据的操作", "The question is SQL or an operation on the data")
_COURTESY = Text("问题是寒暄", "The question is small talk")
_ABOUT_SYSTEM = Text("问题与本系统有关", "The question is about this system")
_ABOUT_RESULT = Text("问题与上一个结果有关", "The question is about an earlier result")
_ABOUT_COURSE = Text("问题与上一个结果的变化有关", "The question is about the course of an earlier result")
_FOLLOWS = Text("问题接着之前的查询追问", "The question goes on from an earlier one about the data")
_LIKE_QUERY = Text(
    "问法像数据查询，但没有提到数据库中的内容", "It is asked like a query, but names nothing in the database"
)
_MISSPELT = Text("问题提到了与数据库相近的名称", "The question names something much like a name of the database")
_NAMES_NOTHING = Text("没有提到数据库中的任何内容", "The question names nothing in the database")
_NUDGES = {"DATABASE": 0.1, "CHAT": -0.1}  # by the kind of the turn before
_BRIEF = 3  # words
_MOST_UNREAD = 1  # words that name nothing, in a question that otherwise asks for figures
_MOST_MISSPELT = 3  # words that are near to names, in a question that names nothing else


def classified(inquiry: Inquiry) -> Classification:
    """The kind of question, how sure that is, and why.

    Sure are only SQL, requests to change data, questions that a query can be built for and that have no form of
    conversation, and greetings, thanks and questions about Citu.
    """
    question = inquiry.question.strip()
    if pasted_sql(question, inquiry.catalog) is not None:
        return _data(inquiry, 0.95, "rule_based_strong_business", _OPERATION)
    if SMALL_TALK.match(question):
        return _chat(inquiry, 0.95, _COURTESY)
    words = _words_of(inquiry)
    if written_operation(inquiry) is not None:  # of nothing that is in the database, it may be talk: "add some salt"
        # `add` alone may be a column's name (added_at).
        is_named = len(words.names) > 1 or any(mark.links[0].kind != "column" for mark in words.names)
        return _data(inquiry, 0.95 if is_named else _LIKELY, "rule_based_strong_business", _OPERATION)
    asked = asked_of_last(inquiry)
    if asked is not None and (asked[1] == "why" or not words.names):
        verdict = _chat(inquiry, 0.85, _ABOUT_COURSE if asked[1] in get_args(Course) else _ABOUT_RESULT)
        return replace(verdict, analysis=_TOLD_BY.get(asked[1], ()))
    chat = _chat_verdict(inquiry, question, words)
    if chat is None and continues(inquiry):
        # The caller knows best whether the turn before was about data; the conversation shows that one was.
        sure = 0.9 if inquiry.previous_type == "DATABASE" else 0.7
        is_sure = not words.signs and is_understood(inquiry)
        return _data(inquiry, sure if is_sure else _LIKELY, "rule_based_follow_up", _FOLLOWS)
    return chat or _data_verdict(inquiry, words)


@dataclass(frozen=True)
class _Words:
    """What the words of a question say: things of the database, figures and groups, and what is unknown.

    `signs` counts the forms of conversation; `is_brief`: it is no more than a thing and what is said of it ("unfinished
    projects").
    """

    names: tuple[Mark, ...]
    asks: tuple[Mark, ...]
    unknown: tuple[Mark, ...]
    signs: int
    is_brief: bool

    @property
    def figures(self) -> bool:
        """Whether figures, groups, an order or a list are asked for."""
        return any(
            (mark.means(*_FIGURES) and mark.arg not in _NO_FIGURES) or mark.text.lower().split()[0] in _ORDERED
            for mark in self.asks
        )


def _words_of(inquiry: Inquiry) -> _Words:
    lexicon = lexicon_for(inquiry)
    marks = marks_of(inquiry.question.strip(), lexicon)
    near = {word for said, _ in lexicon.offered for word in (said, *said.split())}
    return _Words(
        tuple(mark for mark in marks if mark.quality >= _CLEAR_QUALITY and not mark.means("noise")),
        tuple(mark for mark in marks if mark.means(*_DATA_INTENTS) or mark.date is not None),
        tuple(mark for mark in marks if mark.is_unknown and mark.text not in near),
        signs_of_talk(inquiry.question),
        len(marks) <= _BRIEF and any(mark.links and mark.links[0].kind == "table" for mark in marks),
    )


def _chat_verdict(inquiry: Inquiry, question: str, words: _Words) -> Classification | None:
    if ABOUT_CITU.search(question) and (not words.names or _TO_CITU.search(question)):
        return _chat(inquiry, 0.9, _ABOUT_SYSTEM)
    if _THANKS.search(question) and not words.names and not (_GOES_ON.search(question) and continues(inquiry)):
        return _chat(inquiry, _LIKELY if words.asks or words.unknown else 0.9, _COURTESY)
    if _GENERAL.search(question) and (not words.names or (len(words.names) == 1 and len(words.asks) <= 1)):
        return _chat(inquiry, _LIKELY, Text("问题像是闲聊或常识", "The question looks like general talk"))
    return None


def _data_verdict(inquiry: Inquiry, words: _Words) -> Classification:
    if not words.names and not (words.figures and not words.signs and is_understood(inquiry)):
        return _unnamed_verdict(inquiry, words)
    shown = in_quotes(mark.text for mark in words.names[:4])
    found = Text(f"问题提到了数据库中的{shown.zh}", f"The question names {shown.en} of the database")
    if not (words.signs or words.unknown) and is_understood(inquiry):
        return _data(inquiry, 0.92 if words.asks else 0.85, "rule_based_strong_business", found)
    if _is_likely_data(inquiry, words):
        return _data(inquiry, _LIKELY, "rule_based_medium_business", found)
    mentioned = Text(
        f"问题像是闲聊或常识，只是提到了{shown.zh}", f"The question looks like talk that merely mentions {shown.en}"
    )
    return _chat(inquiry, _DOUBTFUL, mentioned)


def _is_likely_data(inquiry: Inquiry, words: _Words) -> bool:
    """What a question is taken for without a model: one that names things and asks for figures is a data question."""
    if words.signs:
        return words.signs == 1 and words.figures and not words.unknown
    if not words.unknown or is_understood(inquiry):
        return True
    asks = words.figures or words.is_brief or any(mark.date is not None for mark in words.asks)
    return len(words.unknown) <= _MOST_UNREAD and asks


def _unnamed_verdict(inquiry: Inquiry, words: _Words) -> Classification:
    goes_on = inquiry.previous_type == "DATABASE" and (
        inquiry.context_type is not None or not (words.unknown or _TO_SOMEBODY.search(inquiry.question))
    )
    nudge = _NUDGES.get(inquiry.previous_type or "", 0.0)
    if words.asks and not words.signs and (goes_on or (len(words.asks) >= 2 and words.figures)):
        return _data(inquiry, min(0.5 + nudge, _LIKELY), "rule_based_default", _LIKE_QUERY)
    if words.figures and not words.signs and _is_misspelt(inquiry, words):
        return _data(inquiry, _LIKELY, "rule_based_medium_business", _MISSPELT)
    if goes_on and words.asks:
        return _data(inquiry, _LIKELY, "rule_based_default", _NAMES_NOTHING)
    return _chat(inquiry, round(0.5 - nudge / 2, 2), _NAMES_NOTHING, "rule_based_default")


def _is_misspelt(inquiry: Inquiry, words: _Words) -> bool:
    unknown, lexicon = [mark.text for mark in words.unknown], lexicon_for(inquiry)
    return 0 < len(unknown) <= _MOST_MISSPELT and all(similar_names([word], lexicon) for word in unknown)


def _chat(inquiry: Inquiry, sure: float, reason: Text, method: str = "rule_based_chat") -> Classification:
    return Classification("CHAT", sure, method, reason.to(inquiry.lang))


def _data(inquiry: Inquiry, sure: float, method: str, reason: Text) -> Classification:
    return Classification("DATABASE", sure, method, reason.to(inquiry.lang))
