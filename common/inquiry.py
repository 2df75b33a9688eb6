"""The question as skills get it: the model and the rules alike."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from common.learning import NO_EXPERIENCE, Experience
from common.text import Lang
from common.values import Catalog, Turn

Emit = Callable[[str], None]
"""Takes pieces of text as they are written; they concatenate to the full text. None stands for
nobody watching.
"""

Readability = Literal["readable", "unclear", "unreadable"]
"""Whether SQL can be written for a question; of an unclear one, what is unclear can be asked."""


@dataclass(frozen=True)
class StoredValue:
    """A stored value that words of a question name, looked up in the database.

    Attributes:
        said: the words, as the question has them.
        table: (schema, name) of the column's table.
        value: as it is stored.
        is_exact: whether `said` differs from it at most in case, width, spaces and traditional or
            simplified writing; else by a word for the kind of place or company, or by spelling.
        is_meant: whether it is what `said` stands for; else it only resembles it: it may be offered
            to the user, never used, and never shown to a model.
    """

    said: str
    table: tuple[str, str]
    column: str
    value: str
    is_exact: bool = True
    is_meant: bool = True


@dataclass(frozen=True)
class Inquiry:
    """One question with what is known about it.

    Attributes:
        lang: language of every sentence the answer will hold.
        table: the table the caller says the question is about.
        context_type: kind of the previous turn (`DATABASE` or `CHAT`), as the caller knows it.
        history: earlier turns of the same conversation, oldest first; only the latest few.
        found_values: stored values that the question names, beside those that the catalogue lists.
        experience: what has been learnt that may help.
        findings: what was computed of the last result's rows because the question is about it:
            sentences in `lang`, each with how it was computed.
        is_model_down: whether rules answer because the model that is set up has failed; else there
            is none, or it answers.
    """

    question: str
    lang: Lang
    catalog: Catalog
    table: str | None = None
    context_type: str | None = None
    history: tuple[Turn, ...] = ()
    found_values: tuple[StoredValue, ...] = ()
    experience: Experience = NO_EXPERIENCE
    findings: tuple[str, ...] = ()
    is_model_down: bool = False

    @property
    def previous_type(self) -> str | None:
        """Return the kind of the previous turn, by the caller or else by the conversation."""
        if self.context_type:
            return self.context_type
        if self.history:
            return self.history[-1].question_type

        return None
