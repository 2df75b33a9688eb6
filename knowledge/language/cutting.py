"""Where names and sentences are cut into words: the one place, so that both sides of every
comparison are cut alike.
"""

import re

HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Han characters, as the inside of a regular expression's brackets."""

ALONE = rf"\u3040-\u30ff{HAN}"
"""Characters of the scripts that write no blanks, the same."""

_HAN = re.compile(f"[{HAN}]")
_ASCII_LETTERS = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"
_PLAIN = re.compile(rf"{_ASCII_LETTERS}|\d+|[{ALONE}]+")
_ANY = re.compile(rf"[^\W\d_{ALONE}]+|\d+|[{ALONE}]+")
_OTHER_LETTER = re.compile(rf"(?![A-Za-z{ALONE}])[^\W\d_]")
_ENDING = re.compile(r"(?<=\w)['\u2019][sS](?!\w)")


def has_han(text: str) -> bool:
    """Tell whether the text holds a Han character."""
    return bool(_HAN.search(text))


def pieces(text: str) -> list[str]:
    """The words of `text` in order, as they are written: cut at case, digits, underscores and
    whatever is no letter.

    `orderItems2` and `ORDER_ITEMS_2` are three words, `HTTPServer` two; a run of Han characters is
    one. An English `'s` belongs to no word.
    """
    if "'" in text or "\u2019" in text:
        text = _ENDING.sub("", text)
    if text.isascii() or not _OTHER_LETTER.search(text):
        return _PLAIN.findall(text)
    words = []
    for run in _ANY.findall(text):
        words.extend(_cut_at_case(run))
    return words


def _cut_at_case(run: str) -> list[str]:
    """The words of letters that are not only ASCII, by the rules of `_ASCII_LETTERS`."""
    words = []
    start = 0
    for at in range(1, len(run)):
        begins = run[at].isupper() and not run[at - 1].isupper()
        ends_capitals = (
            run[at - 1].isupper() and run[at].islower() and at - 1 > start and run[at - 2].isupper()
        )
        if begins or ends_capitals:
            cut = at if begins else at - 1
            words.append(run[start:cut])
            start = cut
    return [*words, run[start:]]
