"""The text of an answer while a model writes it.

A reply may say something before it calls tools ("Let me look at the regions first"), and that is
known only when the call comes. So the beginning of each reply is held back, and passed on when the
reply turns out to be the answer or has become longer than what is said on the way. A longer text
before calls has been read by then, so it stays a part of the answer: what is passed on is always
what the answer begins with, whether anybody watches or not.
"""

from agent.thinking.llm.reasoning import VisibleText, visible_text
from agent.thinking.llm.replies import WITHHELD
from common.inquiry import Emit
from common.text import Lang
from llm import Completion
from llm.tokens import PER_TOKEN, weight

_HELD = 60 * PER_TOKEN  # weight of what is said on the way
_BETWEEN = "\n\n"


class AnswerText:
    """The text of one reply.

    Args:
        before: what the user has read of the answer; text of earlier replies.
        emit: passes text on; None when nobody watches.
    """

    def __init__(self, before: str, emit: Emit | None) -> None:
        self._before = before
        self._emit = emit
        self._is_open = False
        self.restart()

    def restart(self) -> bool:
        """Forget what was held back, for another reply; tell whether nothing was passed on."""
        self._visible = VisibleText()
        self._held = ""
        return not self._is_open

    def feed(self, piece: str) -> None:
        """Take a piece of the reply."""
        self._pass_on(self._visible.feed(piece))

    def on_the_way(self, reply: Completion) -> str:
        """Return the text that was shown so far, when the reply turns out to call tools."""
        text = visible_text(reply.text, "")
        if weight(text) <= _HELD and not self._is_open:
            return self._before

        self._finish(text)
        return self._joined(text)

    def answer(self, reply: Completion, lang: Lang) -> str:
        """Return the whole answer of a reply that called no tools."""
        text = visible_text(reply.text, reply.reasoning)
        if not text and reply.is_withheld:
            text = WITHHELD.to(lang)

        mark = "…" if reply.is_cut else ""
        self._finish(text, mark)
        return self._joined(text + mark)

    def _finish(self, text: str, mark: str = "") -> None:
        if self._is_open:
            self._say(self._visible.finish() + mark)
        else:
            self._open(text + mark)

    def _pass_on(self, text: str) -> None:
        if self._is_open:
            self._say(text)
            return

        self._held += text
        if weight(self._held) > _HELD:
            self._open(self._held)

    def _open(self, text: str) -> None:
        self._is_open = True
        self._say(_BETWEEN if self._before else "")
        self._say(text)

    def _say(self, text: str) -> None:
        if text and self._emit:
            self._emit(text)

    def _joined(self, text: str) -> str:
        return _BETWEEN.join(filter(None, (self._before, text)))
