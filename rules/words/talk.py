"""Forms of conversation: what people say around a request, and how they talk when they don't ask a
database.

A sentence may hold nothing but words of the database and still be talk ("I used to work in a
warehouse"): what tells them apart is who speaks of what — oneself, somebody's opinion, advice,
causes, definitions — not the words named.
"""

import re

from common.text import language_of
from rules.words import WORDS

_ADDRESSED = rf"(?:[\s,，]*(?:{WORDS.any_of('talk.addressed')})(?![a-z]))?"
_SIGN = r"[,，.。!！~～;；、:：]"
_STOP = rf"[\s,，.。!！~～;；、:：?？{WORDS.chinese.text('talk.particles')}]"
_COURTESY = re.compile(
    rf"^\W*(?:(?:{'|'.join(WORDS.english.phrases('talk.greetings'))})(?![a-z])"
    rf"{_ADDRESSED}(?:{_STOP}+|(?=[\u4e00-\u9fff]))|"
    rf"(?:{'|'.join(WORDS.chinese.phrases('talk.greetings'))}){_ADDRESSED}{_STOP}*|"
    rf"(?:{WORDS.any_of('talk.asides')}){_ADDRESSED}\s*{_SIGN}{_STOP}*)+"
    rf"(?:{WORDS.any_of('talk.joints')})?",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    rf"(?<![\s,，.。!！;；])[\s,，.。!！;；]++(?:{WORDS.any_of('talk.closings')})[\s!！.。~～]*$",
    re.IGNORECASE,
)
_FRAMES = re.compile(WORDS.any_of("talk.frames"), re.IGNORECASE)
_OURS, _ONESELF, _YOURSELF = (WORDS.found(f"talk.{who}") for who in ("ours", "oneself", "yourself"))
_STATEMENT = re.compile(
    rf"^(?!\W*(?:{WORDS.any_of('talk.question_beginnings')})\b)"
    rf"(?:(?!\b(?:{WORDS.any_of('talk.clause_beginnings')})\b)[^?])*?"
    rf"\b(?:{WORDS.any_of('talk.finite_verbs')})\b",
    re.IGNORECASE,
)
_WHETHER = re.compile(
    rf"^\W*(?:{WORDS.any_of('talk.whether')})(?:n't)? "
    rf"(?!(?:{WORDS.any_of('talk.not_whether')})\b)\w+",
    re.IGNORECASE,
)
_FORMS = ("advice", "causes", "definitions", "opinions", "creations", "narration")
_SIGNS = (
    *(WORDS.found(f"talk.{form}") for form in _FORMS),
    WORDS.begins("talk.others"),
    re.compile(
        "|".join(
            (WORDS.begins("talk.condition_beginnings").pattern, WORDS.any_of("talk.conditions"))
        ),
        re.I,
    ),
)

SMALL_TALK = re.compile(
    rf"^\W*(?:{WORDS.any_of('talk.small.phrases')})"
    rf"(?:[\s,，!！.。~?？{WORDS.chinese.text('talk.small.particles')}]"
    rf"|{WORDS.any_of('talk.small.addressed')})*+$",
    re.IGNORECASE,
)
"""Nothing but courtesy."""
THANKS = re.compile(
    rf"^\W*(?:(?:{WORDS.any_of('talk.small.approval')})(?:[\s,，.。!！;；、]+|$))+", re.IGNORECASE
)
"""What people say before they go on; it asks for nothing."""
ABOUT_CITU = WORDS.found("talk.citu.about")
"""Asks who or what answers here."""
REWORDED = WORDS.begins("talk.rewordings")
"""Looks like an order to change data, but names nothing that would be changed: the question before
is.
"""


def without_courtesy(question: str) -> str:
    """Return the question without the greeting before it and the thanks behind; empty when it is
    nothing else.
    """
    rest = _COURTESY.sub("", question.strip(), count=1)
    return _CLOSING.sub("", rest).strip()


def signs_of_talk(question: str) -> int:
    """Return how many forms of conversation a question has; 0 when it may be asked of a
    database.
    """
    text = without_courtesy(question)
    bare = _OURS.sub(" ", _FRAMES.sub(" ", text))
    found = [form.search(text) for form in _SIGNS]
    found += [_ONESELF.search(bare), _YOURSELF.search(bare)]
    if language_of(text) == "en":
        found += [_STATEMENT.search(_FRAMES.sub("show ", text)), _WHETHER.search(text)]

    return sum(match is not None for match in found)
