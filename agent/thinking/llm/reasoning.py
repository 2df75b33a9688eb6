"""Removes a model's reasoning (`<think>…</think>`) from replies, whole or in pieces."""

import re

from common.special_tokens import CLOSING_THOUGHTS, OPENING_THOUGHTS

# Some chat templates put the opening tag into the prompt, so that the reply holds only the closing
# one.
_HEADLESS_BLOCK = re.compile(
    rf"\A(?:(?!{'|'.join(OPENING_THOUGHTS)}).)*?(?:{'|'.join(CLOSING_THOUGHTS)})",
    re.DOTALL | re.IGNORECASE,
)


def without_reasoning(reply: str) -> str:
    """Return a whole reply without its reasoning and without white space at either end."""
    visible = VisibleText()
    return visible.feed(_HEADLESS_BLOCK.sub("", reply, count=1)) + visible.finish()


# Marks the start of the answer, when an endpoint sent reasoning and answer together as reasoning.
_ANSWER = re.compile(
    rf"(?:{'|'.join(CLOSING_THOUGHTS)}|\b(?:final answer|answer)\b[*_]*[:：]"
    r"|(?:最终)?(?:答案|回答)[*_]*[:：])[*_]*",
    re.IGNORECASE,
)


def answer_in(reasoning: str) -> str:
    """Return the end of `reasoning` that is marked as the answer; empty when none is."""
    start = 0
    for mark in _ANSWER.finditer(reasoning):
        start = mark.end()

    return without_reasoning(reasoning[start:]) if start else ""


def visible_text(text: str, reasoning: str) -> str:
    """Return what a reply says to the user: its text, or an answer sent as reasoning."""
    return without_reasoning(text) or answer_in(reasoning)


class VisibleText:
    """Drops the reasoning from a reply that arrives in pieces; tags may be split over pieces.

    The results of `feed` and `finish` concatenate to the visible text, stripped. A block that is
    never closed hides the rest. A block without an opening tag stays visible here, because its
    closing tag comes too late.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._is_hidden = False
        self._stripper = _Stripper()

    def feed(self, piece: str) -> str:
        """Return the text that can be shown after this piece."""
        self._pending += piece
        visible = ""
        tag = self._next_tag()
        while tag is not None:
            start, end = tag
            visible += self._take(start)
            self._pending = self._pending[end - start :]
            self._is_hidden = not self._is_hidden
            tag = self._next_tag()

        visible += self._take(len(self._pending) - self._possible_tag())
        return self._stripper.feed(visible)

    def finish(self) -> str:
        """Return the rest of the visible text when the reply has ended."""
        return self._stripper.feed(self._take(len(self._pending)))

    def _take(self, length: int) -> str:
        piece, self._pending = self._pending[:length], self._pending[length:]
        return "" if self._is_hidden else piece

    @property
    def _tags(self) -> tuple[str, ...]:
        return CLOSING_THOUGHTS if self._is_hidden else OPENING_THOUGHTS

    def _next_tag(self) -> tuple[int, int] | None:
        """Return the start and end of the next tag that changes what is shown."""
        text = self._pending.lower()
        tags = []
        for tag in self._tags:
            start = text.find(tag)
            if start >= 0:
                tags.append((start, start + len(tag)))

        return min(tags, default=None)

    def _possible_tag(self) -> int:
        """Return the length of the end that may be the beginning of a tag."""
        start = max(self._pending.rfind("<"), self._pending.rfind("◁"))
        if start < 0:
            return 0

        tail = self._pending[start:].lower()
        may_be_tag = any(tag.startswith(tail) for tag in self._tags)
        return len(tail) if may_be_tag else 0


class _Stripper:
    """`str.strip` for a text that arrives in pieces."""

    def __init__(self) -> None:
        self._held: list[str] = []  # white space, which is shown once something follows
        self._has_begun = False

    def feed(self, piece: str) -> str:
        if not self._has_begun:
            piece = piece.lstrip()
        if not piece.strip():
            if piece:
                self._held.append(piece)

            return ""

        self._has_begun = True
        text = piece.rstrip()
        shown = "".join((*self._held, text))
        rest = piece[len(text) :]
        self._held = [rest] if rest else []
        return shown
