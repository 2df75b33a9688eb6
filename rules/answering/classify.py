"""Whether a question is about the connected database, judged by its words and the database's own."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from common.inquiry import Inquiry
from common.text import Text
from common.values import ANALYSIS_KINDS, AnalysisKind, Classification, QuestionType
from rules.answering.about_results import course_of_last
from rules.conversation.conversation import continues, is_understood, written_operation
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.query.refusals import in_quotes, similar_names
from rules.schema.lexicon import lexicon_for
from rules.words import WORDS
from rules.words.result_questions import Course, Doubt, kind_of_doubt
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
_BRIEF = 3  # words
_MOST_UNREAD = 1  # words that name nothing, in a question that otherwise asks for figures
_MOST_MISSPELT = 3  # words that are near to names, in a question that names nothing else


def classified(inquiry: Inquiry) -> Classification:
    """The kind of question, how sure that is, and why.

    Sure are only SQL, requests to change data, questions that a query can be built for and that have no form of
    conversation, and greetings, thanks and questions about Citu.
    """
    question = inquiry.question.strip()
    operation = Text("问题是 SQL 语句或针对数据的操作", "The question is SQL or an operation on the data")
    if pasted_sql(question, inquiry.catalog) is not None:
        return _verdict(inquiry, "DATABASE", 0.95, "rule_based_strong_business", operation)
    if SMALL_TALK.match(question):
        return _verdict(inquiry, "CHAT", 0.95, "rule_based_chat", Text("问题是寒暄", "The question is small talk"))
    words = _words_of(inquiry)
    if written_operation(inquiry) is not None:  # of nothing that is in the database, it may be talk: "add some salt"
        # `add` alone may be a column's name (added_at).
        is_named = len(words.names) > 1 or any(mark.links[0].kind != "column" for mark in words.names)
        sure = 0.95 if is_named else _LIKELY
        return _verdict(inquiry, "DATABASE", sure, "rule_based_strong_business", operation)
    doubt = kind_of_doubt(question) if any(turn.sql is not None for turn in inquiry.history) else None
    if doubt == "why" or (doubt is not None and not words.names):
        reason = Text("问题与上一个结果有关", "The question is about an earlier result")
        verdict = _verdict(inquiry, "CHAT", 0.85, "rule_based_chat", reason)
        return replace(verdict, analysis=_TOLD_BY.get(doubt, ()))
    course = None if words.names else course_of_last(inquiry)
    if course is not None:
        reason = Text("问题与上一个结果的变化有关", "The question is about the course of an earlier result")
        return replace(_verdict(inquiry, "CHAT", 0.85, "rule_based_chat", reason), analysis=_TOLD_BY[course])
    chat = _chat_verdict(inquiry, question, words)
    if chat is None and continues(inquiry):
        return _follow_up_verdict(inquiry, words)
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
        return _verdict(
            inquiry, "CHAT", 0.9, "rule_based_chat", Text("问题与本系统有关", "The question is about this system")
        )
    if _THANKS.search(question) and not words.names and not (_GOES_ON.search(question) and continues(inquiry)):
        sure = _LIKELY if words.asks or words.unknown else 0.9
        return _verdict(inquiry, "CHAT", sure, "rule_based_chat", Text("问题是寒暄", "The question is small talk"))
    if _GENERAL.search(question) and (not words.names or (len(words.names) == 1 and len(words.asks) <= 1)):
        reason = Text("问题像是闲聊或常识", "The question looks like general talk")
        return _verdict(inquiry, "CHAT", _LIKELY, "rule_based_chat", reason)
    return None


def _follow_up_verdict(inquiry: Inquiry, words: _Words) -> Classification:
    # The caller knows best whether the turn before was about data; the conversation shows that one was.
    sure = 0.9 if inquiry.previous_type == "DATABASE" else 0.7
    if words.signs or not is_understood(inquiry):
        sure = _LIKELY
    reason = Text("问题接着之前的查询追问", "The question goes on from an earlier one about the data")
    return _verdict(inquiry, "DATABASE", sure, "rule_based_follow_up", reason)


def _data_verdict(inquiry: Inquiry, words: _Words) -> Classification:
    if not words.names and not (words.figures and not words.signs and is_understood(inquiry)):
        return _unnamed_verdict(inquiry, words)
    shown = in_quotes(mark.text for mark in words.names[:4])
    found = Text(f"问题提到了数据库中的{shown.zh}", f"The question names {shown.en} of the database")
    if not (words.signs or words.unknown) and is_understood(inquiry):
        return _verdict(inquiry, "DATABASE", 0.92 if words.asks else 0.85, "rule_based_strong_business", found)
    if _is_likely_data(inquiry, words):
        return _verdict(inquiry, "DATABASE", _LIKELY, "rule_based_medium_business", found)
    mentioned = Text(
        f"问题像是闲聊或常识，只是提到了{shown.zh}", f"The question looks like talk that merely mentions {shown.en}"
    )
    return _verdict(inquiry, "CHAT", _DOUBTFUL, "rule_based_chat", mentioned)


def _is_likely_data(inquiry: Inquiry, words: _Words) -> bool:
    """What a question is taken for without a model: one that names things and asks for figures is a data question."""
    if words.signs:
        return words.signs == 1 and words.figures and not words.unknown
    if not words.unknown or is_understood(inquiry):
        return True
    asks = words.figures or words.is_brief or any(mark.date is not None for mark in words.asks)
    return len(words.unknown) <= _MOST_UNREAD and asks


def _unnamed_verdict(inquiry: Inquiry, words: _Words) -> Classification:
    nudge = 0.1 if inquiry.previous_type == "DATABASE" else -0.1 if inquiry.previous_type == "CHAT" else 0.0
    is_plain = inquiry.context_type is not None or not (words.unknown or _TO_SOMEBODY.search(inquiry.question))
    goes_on = inquiry.previous_type == "DATABASE" and is_plain
    if words.asks and not words.signs and (goes_on or (len(words.asks) >= 2 and words.figures)):
        reason = Text(
            "问法像数据查询，但没有提到数据库中的内容", "It is asked like a query, but names nothing in the database"
        )
        return _verdict(inquiry, "DATABASE", min(0.5 + nudge, _LIKELY), "rule_based_default", reason)
    if words.figures and not words.signs and _is_misspelt(inquiry, words):
        reason = Text("问题提到了与数据库相近的名称", "The question names something much like a name of the database")
        return _verdict(inquiry, "DATABASE", _LIKELY, "rule_based_medium_business", reason)
    reason = Text("没有提到数据库中的任何内容", "The question names nothing in the database")
    kind: QuestionType = "DATABASE" if goes_on and words.asks else "CHAT"
    return _verdict(inquiry, kind, 0.5 - nudge / 2 if kind == "CHAT" else _LIKELY, "rule_based_default", reason)


def _is_misspelt(inquiry: Inquiry, words: _Words) -> bool:
    unknown = [mark.text for mark in words.unknown]
    lexicon = lexicon_for(inquiry)
    return 0 < len(unknown) <= _MOST_MISSPELT and all(similar_names([word], lexicon) for word in unknown)


def _verdict(inquiry: Inquiry, kind: QuestionType, confidence: float, method: str, reason: Text) -> Classification:
    return Classification(kind, round(min(max(confidence, 0.0), 1.0), 2), method, reason.to(inquiry.lang))
