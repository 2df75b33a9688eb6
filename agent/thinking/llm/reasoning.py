"""Removes a model's reasoning (`<think>…</think>`) from replies, whole ones and those that arrive in pieces."""

import re

_TAGS = ("think", "thinking", "thought", "reasoning")
_OPENING = (*(f"<{tag}>" for tag in _TAGS), "◁think▷")
_CLOSING = (*(f"</{tag}>" for tag in _TAGS), "◁/think▷")
# Some chat templates put the opening tag into the prompt, so that the reply holds only the closing one.
_HEADLESS_BLOCK = re.compile(rf"\A(?:(?!{'|'.join(_OPENING)}).)*?(?:{'|'.join(_CLOSING)})", re.DOTALL | re.IGNORECASE)


def without_reasoning(reply: str) -> str:
    """A whole reply without its reasoning and without white space at either end."""
    visible = VisibleText()
    return visible.feed(_HEADLESS_BLOCK.sub("", reply, count=1)) + visible.finish()


# Marks the start of the answer, when an endpoint sent reasoning and answer together as reasoning.
_ANSWER = re.compile(
    rf"(?:{'|'.join(_CLOSING)}|\b(?:final answer|answer)\b[*_]*[:：]|(?:最终)?(?:答案|回答)[*_]*[:：])[*_]*",
    re.IGNORECASE,
)


def answer_in(reasoning: str) -> str:
    """The part at the end of `reasoning` that is marked as the answer; empty when none is."""
    *_, last = [0, *(found.end() for found in _ANSWER.finditer(reasoning))]
    return without_reasoning(reasoning[last:]) if last else ""


def visible_text(text: str, reasoning: str) -> str:
    """What a whole reply says to the user: its text, or an answer that an endpoint took for reasoning."""
    return without_reasoning(text) or answer_in(reasoning)


class VisibleText:
    """Drops the reasoning from a reply that arrives in pieces; tags may be split over pieces.

    The results of `feed` and `finish` concatenate to the visible text, stripped. A block that is never closed hides the
    rest. A block without an opening tag stays visible here, because its closing tag comes too late.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._is_hidden = False
        self._stripper = _Stripper()

    def feed(self, piece: str) -> str:
        """The text that can be shown after this piece."""
        self._pending += piece
        visible = ""
        while (tag := self._next_tag()) is not None:
            visible += self._take(tag[0])
            self._pending = self._pending[tag[1] - tag[0] :]
            self._is_hidden = not self._is_hidden
        return self._stripper.feed(visible + self._take(len(self._pending) - self._possible_tag()))

    def finish(self) -> str:
        """What is left when the reply has ended."""
        return self._stripper.feed(self._take(len(self._pending)))

    def _take(self, length: int) -> str:
        taken, self._pending = self._pending[:length], self._pending[length:]
        return "" if self._is_hidden else taken

    @property
    def _tags(self) -> tuple[str, ...]:
        return _CLOSING if self._is_hidden else _OPENING

    def _next_tag(self) -> tuple[int, int] | None:
        text = self._pending.lower()
        return min(((start, start + len(tag)) for tag in self._tags if (start := text.find(tag)) >= 0), default=None)

    def _possible_tag(self) -> int:
        """Length of the end that may be the beginning of a tag."""
        start = max(self._pending.rfind("<"), self._pending.rfind("◁"))
        tail = self._pending[start:].lower()
        return len(tail) if start >= 0 and any(tag.startswith(tail) for tag in self._tags) else 0


class _Stripper:
    """`str.strip` for a text that arrives in pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._has_begun = False

    def feed(self, piece: str) -> str:
        text = self._held + piece
        text = text if self._has_begun else text.lstrip()
        shown = text.rstrip()
        self._held = text[len(shown) :]
        self._has_begun = self._has_begun or bool(shown)
        return shown
