"""Telling apart requests to change data and honest questions that merely use such words.

"已删除的服务区有多少" and "orders updated yesterday" ask about data; "删除所有已关闭的服务区" and "drop the shop table"
want it changed. What matters is the verb's place: an order begins with it, or says 把 … 删除.
"""

import re

from common.word_files import Words
from rules.words import WORDS

_IGNORE = WORDS.chinese.text("orders.ignore")
_POLITE = rf"^\s*(?:{'|'.join(WORDS.english.phrases('orders.polite'))})*\s*"
_POLITE_HAN = rf"^(?:{'|'.join(WORDS.chinese.phrases('orders.polite'))}|,|、|:|\s|{_IGNORE}[^,。;]*[,。;])*"
_JOINT = rf"\b(?:{'|'.join(WORDS.english.phrases('orders.joints'))})\s+"
_JOINT_HAN = rf"(?:{'|'.join(WORDS.chinese.phrases('orders.joints'))})(?:{WORDS.any_of('orders.takes')})?"
_OBJECT = rf"\s+(?:{WORDS.any_of('orders.objects')})\b"
_NOT_VERB = rf"(?!{WORDS.any_of('orders.no_verb')})"
_STRUCTURE = re.compile(rf"\b(?:{WORDS.any_of('orders.structures')})s?\b", re.IGNORECASE)
_ASKS = re.compile(WORDS.any_of("orders.asks"))


def _orders(words: Words, table: str, before: str, behind: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """What is ordered, and how; in the order of the table."""
    return tuple(
        (name, re.compile(rf"{before}(?:{'|'.join(verbs)}){behind}", re.IGNORECASE))
        for name, verbs in words.under(f"orders.{table}").items()
    )


_ENGLISH = _orders(WORDS.english, "verbs", _POLITE, r"\b") + _orders(WORDS.english, "verbs", _JOINT, _OBJECT)
_HAN_CLAUSE = _orders(WORDS.chinese, "verbs", _JOINT_HAN, _NOT_VERB)
_HAN = _orders(WORDS.chinese, "verbs", _POLITE_HAN, _NOT_VERB) + _orders(WORDS.chinese, "disposals", "", "")


def write_request(question: str) -> str | None:
    """The operation a sentence orders (`DELETE`, `UPDATE`, …); None when it asks."""
    text = question.strip()
    for name, pattern in _ENGLISH:
        if pattern.search(text):
            return "DROP" if name == "DELETE" and _STRUCTURE.search(text) and "from" not in text.lower() else name
    asks = bool(_ASKS.search(text))
    for name, pattern in _HAN_CLAUSE:
        if pattern.search(text):
            return name
    for name, pattern in _HAN:
        if pattern.search(text) and not (asks and name not in ("DELETE", "DROP", "TRUNCATE")):
            return name
    return None
