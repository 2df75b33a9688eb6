"""Tell questions about the connected database from conversation, by their words and its names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from common.cpu_clock import within
from common.inquiry import Inquiry
from common.text import Text
from common.values import ANALYSIS_KINDS, AnalysisKind, Classification
from rules.answering.about_results import asked_of_last
from rules.conversation.conversation import continues, is_understood, written_operation
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.query.refusals import has_too_many_parts, in_quotes, similar_names
from rules.schema.lexicon import Lexicon, lexicon_for
from rules.words import WORDS
from rules.words.limits import STEP_S, with_bounded_questions
from rules.words.result_questions import Course, Doubt
from rules.words.statements import pasted_sql
from rules.words.talk import ABOUT_CITU, SMALL_TALK, signs_of_talk, without_courtesy
from rules.words.vocabulary import WordKind

_FIGURES: tuple[WordKind, ...] = (
    *("count", "sum", "avg", "avg_per", "max", "min", "share", "each", "by", "bucket", "trend"),
    *("super", "rank", "top", "cmp", "between", "null", "notnull", "date_which", "per_entity"),
    *("above_average", "below_average", "compare"),
)
_GROUPS: tuple[WordKind, ...] = ("each", "by", "bucket", "rank", "share", "per_entity", "trend")
_DATA_INTENTS: tuple[WordKind, ...] = (*_FIGURES, "list", "which", "distinct")
_CLEAR_QUALITY = 0.6
_WHOLE_NAME = 0.9  # quality

_TO_CITU = WORDS.found("talk.citu.to")
_THANKS = WORDS.opens("talk.small.thanks")
_TO_SOMEBODY = WORDS.found("talk.citu.to_somebody")
_GOES_ON = re.compile(r"[,，.。!！;；、]\s*\w")
_GENERAL = WORDS.found("talk.general.subjects")
_FIGURE_ENDS = WORDS.chinese.pattern("talk.citu.figure_ends")
_NUMBER_ENDS = WORDS.chinese.pattern("talk.citu.number_ends")
_ENDING_SIGNS = WORDS.chinese.text("talk.citu.ending_signs")
# Confidence of a verdict that the rules are not sure of: low enough that a model is asked, if there
# is one.
_DOUBTFUL, _LIKELY, _SURE = 0.5, 0.55, 0.9
_ORDERED = frozenset(WORDS.both("talk.citu.ordered"))
_NO_FIGURES = ("=", "+date", "-date")  # 是 and 最近 are said of anything
# Questions about a result that computing may answer. It can't give a reason, but it tells when a
# figure changed, and which groups had a part in it.
_COMPUTED = tuple(kind for kind in ANALYSIS_KINDS if kind != "forecast")
_TOLD_BY: Mapping[Doubt | Course, tuple[AnalysisKind, ...]] = {
    "why": _COMPUTED[1:],
    "meaning": _COMPUTED,
    "trend": ("change", "outliers"),
    "change": ("change",),
    "outlook": ("forecast",),
}
_OPERATION = Text(
    "问题是 SQL 语句或针对数据的操作", "The question is SQL or an operation on the data"
)
_COURTESY = Text("问题是寒暄", "The question is small talk")
_ABOUT_SYSTEM = Text("问题与本系统有关", "The question is about this system")
_ABOUT_RESULT = Text("问题与上一个结果有关", "The question is about an earlier result")
_ABOUT_COURSE = Text(
    "问题与上一个结果的变化有关", "The question is about the course of an earlier result"
)
_FOLLOWS = Text("问题接着之前的查询追问", "The question goes on from an earlier one about the data")
_LIKE_QUERY = Text(
    "问法像数据查询，但没有提到数据库中的内容",
    "It is asked like a query, but names nothing in the database",
)
_MISSPELT = Text(
    "问题提到了与数据库相近的名称", "The question names something much like a name of the database"
)
_TOO_LONG = Text(
    "问题太长，离线规则无法判断类型", "The question is too long for the rules to tell its kind"
)
_NAMES_NOTHING = Text("没有提到数据库中的任何内容", "The question names nothing in the database")
_GENERAL_TALK = Text("问题像是闲聊或常识", "The question looks like general talk")
_CONTEXT_WEIGHTS = {"DATABASE": 0.1, "CHAT": -0.1}  # by the kind of the turn before
_BRIEF = 3  # words
_MOST_UNREAD = 1  # words that name nothing, in a question that otherwise asks for figures
_MOST_UNNAMED = 4  # words that name nothing, in a question that asks for figures of them
_MOST_OF_THINGS = 3  # words that name nothing, where rows of a table are asked for
_MOST_MISSPELT = 3  # words that are near to names, in a question that names nothing else


def classified(inquiry: Inquiry) -> Classification:
    """Classify a question, with a confidence and a reason.

    Sure are only SQL, requests to change data, questions that a query can be built for and that
    have no form of conversation, and greetings, thanks and questions about Citu.
    """
    if pasted_sql(inquiry.question.strip(), inquiry.catalog) is not None:
        return _data(inquiry, 0.95, "rule_based_strong_business", _OPERATION)

    inquiry = with_bounded_questions(inquiry)
    unjudged = _data(inquiry, _LIKELY, "rule_based_default", _TOO_LONG)
    return within(STEP_S, lambda: _classified(inquiry) or unjudged, unjudged)


def _classified(inquiry: Inquiry) -> Classification | None:
    """Return the kind of a question that is no SQL; None where there is too much of it to judge."""
    question = inquiry.question.strip()
    if SMALL_TALK.match(question):
        return _chat(inquiry, 0.95, _COURTESY)

    words = _words_of(inquiry)
    if written_operation(inquiry) is not None:
        sure = 0.95 if _names_operand(words) else _LIKELY
        return _data(inquiry, sure, "rule_based_strong_business", _OPERATION)

    about_result = _about_result(inquiry, words)
    if about_result is not None:
        return about_result
    if words.are_too_many:
        return None

    chat = _chat_verdict(inquiry, question, words)
    if chat is not None:
        return chat
    if continues(inquiry):
        return _follow_up_verdict(inquiry, words)

    return _data_verdict(inquiry, words)


@dataclass(frozen=True)
class _Words:
    """The words of a question by what they tell about its kind.

    Attributes:
        names: the names of what the database has.
        asks: words that ask for data, and dates.
        unknown: words that mean nothing.
        signs: number of its forms of conversation.
        is_brief: whether it is no more than a thing and a word about it ("unfinished projects").
        asks_for_things: whether it asks which rows of a table there are, or is a name for some.
        are_too_many: whether the rules don't read all of them.
    """

    names: tuple[Mark, ...]
    asks: tuple[Mark, ...]
    unknown: tuple[Mark, ...]
    signs: int
    is_brief: bool
    asks_for_things: bool
    are_too_many: bool

    @property
    def names_things(self) -> bool:
        """Tell whether a table is named."""
        return any(map(_names_table, self.names))

    @property
    def figures(self) -> bool:
        """Tell whether figures, groups, an order or a list are asked for."""
        return any(map(_asks_for_figure, self.asks))


def _asks_for_figure(mark: Mark) -> bool:
    if mark.means(*_FIGURES) and mark.arg not in _NO_FIGURES:
        return True

    return mark.text.lower().split()[0] in _ORDERED


def _asks_for_groups(mark: Mark) -> bool:
    """Tell whether a word asks for a figure of each of several: hardly anybody talks so."""
    return mark.means(*_GROUPS)


def _orders(mark: Mark) -> bool:
    """Tell whether a word orders a list or a number: `查询库存`, "count the rows"."""
    text = mark.text.lower().split()[0]
    return text in _ORDERED or (mark.start == 0 and mark.means("count", "list"))


def _words_of(inquiry: Inquiry) -> _Words:
    lexicon = lexicon_for(inquiry)
    marks = marks_of(inquiry.question.strip(), lexicon)
    similar = _words_with_similar_values(lexicon)
    names, asks, unknown = [], [], []
    names_table = False
    for mark in marks:
        if mark.quality >= _CLEAR_QUALITY and not mark.means("noise"):
            names.append(mark)
        if mark.means(*_DATA_INTENTS) or mark.date is not None:
            asks.append(mark)
        if mark.is_unknown and mark.text not in similar:
            unknown.append(mark)
        if _names_table(mark):
            names_table = True

    return _Words(
        names=tuple(names),
        asks=tuple(asks),
        unknown=tuple(unknown),
        signs=signs_of_talk(_without_values(inquiry.question.strip(), names)),
        is_brief=names_table and len(marks) <= _BRIEF,
        asks_for_things=_asks_for_things(marks),
        are_too_many=has_too_many_parts(inquiry.question, marks),
    )


def _without_values(question: str, names: Sequence[Mark]) -> str:
    """Return the question without stored values, whose words say nothing of its form: 质量问题."""
    for mark in names:
        is_value = mark.links[0].kind == "value" and mark.quality >= _WHOLE_NAME
        if is_value and signs_of_talk(mark.text):
            question = question.replace(mark.text, " ")

    return question


def _names_table(mark: Mark) -> bool:
    return bool(mark.links) and mark.links[0].kind == "table"


def _asks_for_things(marks: Sequence[Mark]) -> bool:
    """Tell whether rows of a table are asked for: "which products are …", `…的药品`."""
    named = [place for place, mark in enumerate(marks) if _is_whole_table(mark)]
    for place in named:
        beside = marks[max(place - 1, 0) : place + 2]
        if any(mark.means("which", "list") for mark in beside):
            return True

    if 0 in named and len(marks) > 1 and marks[1].means("with", "not"):
        return True  # "members with a card"

    last = len(marks) - 1
    return last in named and last > 0 and marks[last - 1].means("of")


def _is_whole_table(mark: Mark) -> bool:
    return _names_table(mark) and mark.quality >= _WHOLE_NAME


def _words_with_similar_values(lexicon: Lexicon) -> set[str]:
    """Return the words, alone and together, that resemble a stored value looked up for the
    question.
    """
    words: set[str] = set()
    for text, _ in lexicon.offered:
        words |= {text, *text.split()}

    return words


def _names_operand(words: _Words) -> bool:
    """Tell whether a writing operation is one on the database: "add some salt" is not.

    A column alone does not show that, because `add` may be its name (added_at).
    """
    if len(words.names) > 1:
        return True

    return any(mark.links[0].kind != "column" for mark in words.names)


def _about_result(inquiry: Inquiry, words: _Words) -> Classification | None:
    """Return the verdict on a question about an earlier result; None for others."""
    asked = asked_of_last(inquiry)
    if asked is None:
        return None

    _, topic = asked
    if words.names and topic != "why":
        return None

    reason = _ABOUT_COURSE if topic in get_args(Course) else _ABOUT_RESULT
    return replace(_chat(inquiry, 0.85, reason), analysis=_TOLD_BY.get(topic, ()))


def _chat_verdict(inquiry: Inquiry, question: str, words: _Words) -> Classification | None:
    """Return the verdict on a question in a form of conversation; None for others."""
    may_be_about_citu = not words.names or _TO_CITU.search(question)
    if may_be_about_citu and ABOUT_CITU.search(question):
        return _chat(inquiry, _SURE, _ABOUT_SYSTEM)
    if not words.names and _only_thanks(inquiry, question):
        says_more = bool(words.asks) or bool(words.unknown)
        confidence = _LIKELY if says_more else _SURE
        return _chat(inquiry, confidence, _COURTESY)

    if _GENERAL.search(question) and _names_little(words):
        return _chat(inquiry, _LIKELY, _GENERAL_TALK)

    return None


def _only_thanks(inquiry: Inquiry, question: str) -> bool:
    """Tell whether it thanks, and does not go on with another question after that."""
    if not _THANKS.search(question):
        return False

    asks_on = _GOES_ON.search(question) and continues(inquiry)
    return not asks_on


def _names_little(words: _Words) -> bool:
    if not words.names:
        return True

    return len(words.names) == 1 and len(words.asks) <= 1


def _follow_up_verdict(inquiry: Inquiry, words: _Words) -> Classification:
    """Say how surely a question that continues the one before it is about data."""
    is_sure = not words.signs and is_understood(inquiry)
    if not is_sure:
        return _data(inquiry, _LIKELY, "rule_based_follow_up", _FOLLOWS)

    # The caller knows best whether the turn before was about data; the conversation shows that one
    # was.
    sure = 0.9 if inquiry.previous_type == "DATABASE" else 0.7
    return _data(inquiry, sure, "rule_based_follow_up", _FOLLOWS)


def _data_verdict(inquiry: Inquiry, words: _Words) -> Classification:
    if not words.names:
        asks_for_figures = words.figures and not words.signs
        if not (asks_for_figures and is_understood(inquiry)):
            return _unnamed_verdict(inquiry, words)

    shown = in_quotes(mark.text for mark in words.names[:4])
    found = Text(
        f"问题提到了数据库中的{shown.zh}", f"The question names {shown.en} of the database"
    )
    is_plain = not words.signs and not words.unknown
    if is_plain and is_understood(inquiry):
        return _data(inquiry, 0.92 if words.asks else 0.85, "rule_based_strong_business", found)
    if _is_likely_data(inquiry, words):
        return _data(inquiry, _LIKELY, "rule_based_medium_business", found)

    mentioned = Text(
        f"问题像是闲聊或常识，只是提到了{shown.zh}",
        f"The question looks like talk that merely mentions {shown.en}",
    )
    return _chat(inquiry, _DOUBTFUL, mentioned)


def _is_likely_data(inquiry: Inquiry, words: _Words) -> bool:
    """Tell whether a question is taken for a data question where no model can be asked.

    It is if it names things and asks for figures.
    """
    if words.signs:
        return words.signs == 1 and _asks_in_form_of_talk(words)
    if not words.unknown or is_understood(inquiry):
        return True
    if words.asks_for_things and len(words.unknown) <= _MOST_OF_THINGS:
        return True
    if _ends_like_data(inquiry, words):
        return True
    if len(words.unknown) <= _MOST_UNNAMED and any(map(_asks_for_groups, words.asks)):
        return True
    if len(words.unknown) > _MOST_UNREAD:
        return False
    if words.figures or words.is_brief:
        return True

    dates = [mark.date for mark in words.asks if mark.date is not None]
    return bool(dates)


def _asks_in_form_of_talk(words: _Words) -> bool:
    """Tell whether figures of known things are asked for, or one of each of several things:
    `各服务区的员工满意度`.
    """
    if words.figures and not words.unknown:
        return True
    if len(words.unknown) > _MOST_UNREAD or not words.names_things:
        return False

    return any(map(_asks_for_groups, words.asks))


def _unnamed_verdict(inquiry: Inquiry, words: _Words) -> Classification:
    """Return the verdict on a question that names nothing of the database."""
    may_go_on = _may_go_on_unnamed(inquiry, words)
    weight = _CONTEXT_WEIGHTS.get(inquiry.previous_type or "", 0.0)
    has_no_signs = not words.signs
    goes_on = may_go_on and bool(words.asks)
    asks_like_query = len(words.asks) >= 2 and words.figures
    if len(words.unknown) <= _MOST_UNNAMED and not asks_like_query:
        asks_like_query = any(map(_asks_for_groups, words.asks))
        asks_like_query |= any(map(_orders, words.asks[:1]))

    asks_like_query |= _ends_like_data(inquiry, words)
    if has_no_signs and (goes_on or asks_like_query):
        confidence = min(0.5 + weight, _LIKELY)
        return _data(inquiry, confidence, "rule_based_default", _LIKE_QUERY)

    if has_no_signs and words.figures and _is_misspelt(inquiry, words):
        return _data(inquiry, _LIKELY, "rule_based_medium_business", _MISSPELT)
    if goes_on:
        return _data(inquiry, _LIKELY, "rule_based_default", _NAMES_NOTHING)

    confidence = round(0.5 - weight / 2, 2)
    return _chat(inquiry, confidence, _NAMES_NOTHING, "rule_based_default")


def _ends_like_data(inquiry: Inquiry, words: _Words) -> bool:
    """Tell whether a short text ends as names of figures do, or asks how many there are."""
    if len(words.unknown) > _MOST_UNNAMED:
        return False

    text = without_courtesy(inquiry.question).rstrip(_ENDING_SIGNS)
    return bool(_FIGURE_ENDS.search(text) or _NUMBER_ENDS.search(text))


def _may_go_on_unnamed(inquiry: Inquiry, words: _Words) -> bool:
    """Tell whether the question may go on from a turn about data, though it names nothing."""
    if inquiry.previous_type != "DATABASE":
        return False
    if inquiry.context_type is not None:
        return True

    return not words.unknown and not _TO_SOMEBODY.search(inquiry.question)


def _is_misspelt(inquiry: Inquiry, words: _Words) -> bool:
    """Tell whether each of the few unknown words is like a name of the database."""
    if not 0 < len(words.unknown) <= _MOST_MISSPELT:
        return False

    lexicon = lexicon_for(inquiry)
    return all(similar_names([mark.text], lexicon) for mark in words.unknown)


def _chat(
    inquiry: Inquiry, sure: float, reason: Text, method: str = "rule_based_chat"
) -> Classification:
    return Classification("CHAT", sure, method, reason.to(inquiry.lang))


def _data(inquiry: Inquiry, sure: float, method: str, reason: Text) -> Classification:
    return Classification("DATABASE", sure, method, reason.to(inquiry.lang))
