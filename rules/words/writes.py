"""Tell apart requests to change data and honest questions that merely use such words.

"已删除的服务区有多少" and "orders updated yesterday" ask about data; "删除所有已关闭的服务区" and
"drop the shop table" want it changed. What matters is the verb's place: an order begins with it, or
says 把 … 删除.
"""

import re
from collections.abc import Iterable

from common.word_files import Words
from rules.words import WORDS

_IGNORE = WORDS.chinese.text("orders.ignore")


def _polite(words: Words, *others: str) -> str:
    """Return a pattern of any number of polite phrases.

    Each is read in one way only, the longest, and never again: one that begins like another would
    double the ways of reading a text with every time that it is said.
    """
    phrases = "|".join(words.phrases("orders.polite")).split("|")
    return f"(?:(?>{'|'.join((*sorted(phrases, key=len, reverse=True), *others))}))*"


_POLITE = rf"^\s*+{_polite(WORDS.english)}\s*+"
_SIGNS_HAN = (",", "、", ":", r"\s", f"{_IGNORE}[^,。;]*+[,。;]")
_POLITE_HAN = f"^{_polite(WORDS.chinese, *_SIGNS_HAN)}"
_JOINT = rf"\b(?:{'|'.join(WORDS.english.phrases('orders.joints'))})\s+"
_JOINT_HAN = (
    rf"(?:{'|'.join(WORDS.chinese.phrases('orders.joints'))})(?:{WORDS.any_of('orders.takes')})?"
)
_OBJECT = rf"\s+(?:{WORDS.any_of('orders.objects')})\b"
_NOT_VERB = rf"(?!{WORDS.any_of('orders.no_verb')})"
_STRUCTURE = re.compile(rf"\b(?:{WORDS.any_of('orders.structures')})s?\b", re.IGNORECASE)
_ASKS = re.compile(WORDS.any_of("orders.asks"))
_REMOVALS = ("DELETE", "DROP", "TRUNCATE")  # orders in Chinese even where the sentence asks


def _orders(
    words: Words, table: str, before: str, behind: str
) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return each operation with the pattern of its order, as the table has them."""
    return tuple(
        (name, re.compile(rf"{before}(?:{'|'.join(verbs)}){behind}", re.IGNORECASE))
        for name, verbs in words.under(f"orders.{table}").items()
    )


_ENGLISH = _orders(WORDS.english, "verbs", _POLITE, r"\b") + _orders(
    WORDS.english, "verbs", _JOINT, _OBJECT
)
_HAN_CLAUSE = _orders(WORDS.chinese, "verbs", _JOINT_HAN, _NOT_VERB)
_HAN = _orders(WORDS.chinese, "verbs", _POLITE_HAN, _NOT_VERB) + _orders(
    WORDS.chinese, "disposals", "", ""
)
_BUILDS = _orders(WORDS.chinese, "builds", "", "") + _orders(WORDS.english, "builds", "", "")


def write_request(question: str) -> str | None:
    """Return the operation a sentence orders (`DELETE`, `UPDATE`, …); None when it asks."""
    text = question.strip()
    ordered = _first(_ENGLISH, text)
    if ordered == "DELETE" and _STRUCTURE.search(text) and "from" not in text.lower():
        return "DROP"
    if ordered is not None:
        return ordered

    ordered = _first(_HAN_CLAUSE, text) or _first(_BUILDS, text)
    if ordered is not None:
        return ordered
    if _ASKS.search(text):
        removals = [order for order in _HAN if order[0] in _REMOVALS]
        return _first(removals, text)

    return _first(_HAN, text)


def _first(orders: Iterable[tuple[str, re.Pattern[str]]], text: str) -> str | None:
    for name, pattern in orders:
        if pattern.search(text):
            return name

    return None
