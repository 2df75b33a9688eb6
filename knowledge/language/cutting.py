"""Cuts names and sentences into words: the one place, so that both sides are always cut alike."""

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
    """Cut `text` into words, as they are written, at case, digits and whatever is no letter.

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
    """Cut letters that are not only ASCII, by the rules of `_ASCII_LETTERS`."""
    words = []
    start = 0
    for at in range(1, len(run)):
        end = _end_of_word(run, start, at)
        if end is not None:
            words.append(run[start:end])
            start = end

    return [*words, run[start:]]


def _end_of_word(run: str, start: int, at: int) -> int | None:
    """Return where the word that begins at `start` ends, if the letter at `at` tells."""
    letter = run[at]
    before = run[at - 1]
    if letter.isupper() and not before.isupper():
        return at

    follows_capital = before.isupper() and letter.islower()
    has_more_capitals = at - 1 > start and run[at - 2].isupper()
    if follows_capital and has_more_capitals:
        return at - 1

    return None
