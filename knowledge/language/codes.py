"""Codes that a comment explains: `状态：0-停用 1-正常`, `1=active, 2=closed`, `性别(1男,2女)`."""

import re
from functools import lru_cache

from knowledge.language.atoms import normalise
from knowledge.words import WORDS

_SEPARATED = re.compile(
    r"(?<![\w.])([A-Za-z0-9]{1,12})\s*[-=:：、.]\s*([^\s,，;；、:：=()（）\-]+)"
)
# Without a sign between them, only a short code right before a Chinese label is one.
_GLUED = re.compile(
    r"(?<![\w.])(\d{1,2}|[A-Za-z]) ?([\u3400-\u4dbf\u4e00-\u9fff]{1,8})(?=[\s,;、/|)\]】。]|$)"
)
_MEASURES = frozenset(WORDS.chinese.text("values.measures"))
_YES, _NO = frozenset(WORDS.both("values.yes")), frozenset(WORDS.both("values.no"))


@lru_cache(maxsize=16384)
def labels_of(comment: str | None) -> tuple[tuple[str, str], ...]:
    """Return (code, label) of every code that the comment explains."""
    if not comment:
        return ()

    explained = _explained_codes(normalise(comment))
    return tuple((match[1], match[2]) for match in explained)


def before_labels(text: str) -> str:
    """Return what stands before the codes of a normalised comment; all of it if it has none."""
    explained = _explained_codes(text)
    if not explained:
        return text

    before = text[: explained[0].start()]
    return before.rstrip(" (:-,[【")


def flag_of(codes: dict[str, str]) -> tuple[str, str] | None:
    """Return the codes of yes and no from {code: label}; None when they say anything else."""
    if len(codes) != 2:
        return None

    yes = no = None
    for code, label in codes.items():
        word = label.lower()
        if word in _YES:
            yes = code
        if word in _NO:
            no = code

    if yes is None or no is None:
        return None

    return yes, no


def _explained_codes(text: str) -> list[re.Match[str]]:
    separated = list(_SEPARATED.finditer(text))
    if len(separated) >= 2:
        return separated

    glued = list(_GLUED.finditer(text))
    if len(glued) < 2:
        return []

    codes = {match[1] for match in glued}
    labels = {match[2] for match in glued}
    are_distinct = len(codes) == len(labels) == len(glued)
    if not are_distinct or labels & _MEASURES:
        return []

    return glued
