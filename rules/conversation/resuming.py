"""The answer to a question that asked back: "heaviest shipment" → "by which figure?" → "total weight"."""

import re
from collections.abc import Iterator

from rules.linking.marks import Mark, marks_of
from rules.query.refusals import Refusal, with_choice
from rules.schema.lexicon import Lexicon

_LONGEST = 60  # characters of an answer; what is longer is a question of its own
_YEAR = re.compile(r"((?:19|20)\d\d)\s*年?")
_AROUND = re.compile(
    r"^(?:by|the|按照?|用|根据|是|我说的是|i mean|i meant|it'?s)\s*(?:the )?|[\s.。!！?？吧]+$", re.IGNORECASE
)


def completed(pending: str, refusal: Refusal, said: str, lexicon: Lexicon) -> Iterator[str]:
    """The pending question with what was said put where it was missing, most likely first; none for no such answer.

    Args:
        pending: the question that was refused.
        refusal: why: its `words` are in doubt, its `choices` were offered.
        said: what the user says to that.
    """
    answer = _AROUND.sub("", said.strip())
    if refusal.reason != "ambiguous_question" or not 0 < len(answer) <= _LONGEST:
        return
    if (year := _YEAR.fullmatch(answer)) is not None:
        yield from (_in_year(pending, word, year[1]) for word in refusal.words)
    elif (choice := _choice(answer, refusal)) or _only_names(marks_of(answer, lexicon)):
        yield from with_choice(pending, refusal.words, choice or answer)


def _in_year(pending: str, word: str, year: str) -> str:
    return pending.replace(word, f"{word} {year}" if word.isascii() else f"{year}年{word}", 1)


def _choice(answer: str, refusal: Refusal) -> str | None:
    """The offered choice that the answer is, or the only one that ends with it ("client" of "which clients")."""
    said, offered = answer.lower(), [choice for texts in refusal.choices for choice in (texts.zh, texts.en)]
    exact = next((choice for choice in offered if choice.lower() == said), None)
    near = {choice for choice in offered if len(said) > 1 and _bare(choice).endswith(_bare(said))}
    return exact or (near.pop() if len(near) == 1 else None)


def _bare(name: str) -> str:
    return name.lower().removesuffix("表").removesuffix("信息").removesuffix("s")


def _only_names(marks: tuple[Mark, ...]) -> bool:
    """Whether nothing is said but the name of a column, which asks for nothing."""
    named = [mark for mark in marks if any(link.kind == "column" for link in mark.links)]
    others = [mark for mark in marks if mark not in named and not mark.means("noise", "of", "unit")]
    return len(named) == 1 and all(any(link.kind == "table" for link in mark.links) for mark in others)
