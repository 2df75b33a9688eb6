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
    """(code, label) of every code the comment explains; empty when it explains none."""
    return tuple((match[1], match[2]) for match in _explained(normalise(comment or "")))


def before_labels(text: str) -> str:
    """The (normalised) comment without the codes it explains, when something stands before them."""
    found = _explained(text)
    return (text[: found[0].start()].rstrip(" (:-,[【") if found else "") or text


def flag_of(codes: dict[str, str]) -> tuple[str, str] | None:
    """Return the codes of yes and no from {code: label}; None when they say anything else."""
    if len(codes) != 2:
        return None
    code_of = {text.lower(): code for code, text in codes.items()}
    said_yes = [code for text, code in code_of.items() if text in _YES]
    said_no = [code for text, code in code_of.items() if text in _NO]
    if said_yes and said_no:
        return (said_yes[0], said_no[0])
    return None


def _explained(text: str) -> list[re.Match[str]]:
    separated = list(_SEPARATED.finditer(text))
    if len(separated) >= 2:
        return separated
    glued = list(_GLUED.finditer(text))
    labels = {match[2] for match in glued}
    are_codes = (
        len(labels) == len({match[1] for match in glued}) == len(glued) and not labels & _MEASURES
    )
    if are_codes and len(glued) >= 2:
        return glued
    return []
