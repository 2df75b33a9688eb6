"""Findings about a request while it is read and bound: questions, assumptions, refusals."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from common.text import Lang, Text
from etl.meaning.decisions import Decision, NoRows
from etl.schemas.requirement import (
    Ambiguity,
    AmbiguityKind,
    AnalysisResult,
    Assumption,
    Choice,
    DecidedBy,
    Impossible,
    ImpossibleKind,
    UserIntent,
)

CANCEL = "__cancel__"


_NO_ROWS = NoRows()


class NotBound(Exception):
    """A part of the intent can't be bound; the reason stands in the findings."""


@dataclass(frozen=True)
class UserChoice:
    """A choice about a topic, which is not asked again in the conversation."""

    kind: AmbiguityKind
    topic: str
    value: str


class RequestFindings:
    """Collects what is found; questions that were answered are not asked again.

    A sentence is read first, and its intent bound then, with one object for both: the ids of
    questions, numbered by kind, are those of one sequence.

    Args:
        answers: the values of choices, by the ids of ambiguities.
        lang: the language of the texts.
        chosen: what was chosen earlier in the conversation.
    """

    def __init__(
        self, answers: Mapping[str, str], lang: Lang, chosen: Iterable[UserChoice] = ()
    ) -> None:
        self._answers = answers
        self._lang = lang
        self._decided = {
            (earlier_choice.kind, earlier_choice.topic): earlier_choice.value
            for earlier_choice in chosen
        }
        self._asked: Counter[str] = Counter()
        self._known: dict[tuple[AmbiguityKind, str], str | None] = {}
        self.ambiguities: list[Ambiguity] = []
        self.assumptions: list[Assumption] = []
        self.impossible: list[Impossible] = []
        self.decisions: dict[str, Decision] = {}

    @property
    def is_clear(self) -> bool:
        """Tell whether nothing is open and nothing impossible."""
        return not self.ambiguities and not self.impossible

    @property
    def chosen(self) -> tuple[UserChoice, ...]:
        """Return what was chosen, now or earlier."""
        choices: list[UserChoice] = []
        for (kind, topic), value in self._known.items():
            if value is not None:
                choices.append(UserChoice(kind, topic, value))

        return tuple(choices)

    def decided(self, kind: AmbiguityKind, topic: str) -> str | None:
        """Return what was chosen earlier about a topic."""
        return self._decided.get((kind, topic))

    def analysis(
        self, intent: UserIntent | None, method: Literal["rules", "given"]
    ) -> AnalysisResult:
        """Return all that was found, with the intent that it was found for."""
        return AnalysisResult(
            intent=intent,
            ambiguities=self.ambiguities,
            assumptions=self.assumptions,
            impossible=self.impossible,
            method=method,
        )

    def shown(self, text: Text) -> str:
        """Return a text in the language of the answer."""
        return text.to(self._lang)

    def choose(
        self,
        kind: AmbiguityKind,
        topic: str,
        prompt: Text,
        choices: Sequence[Choice],
        operation: int | None = None,
    ) -> str:
        """Return the value that was chosen.

        Args:
            topic: what the question is about; of one kind, a topic is asked once.

        Raises:
            NotBound: nothing was chosen yet; the question is noted.
        """
        question = (kind, topic)
        if question not in self._known:
            earlier = self._decided.get(question)
            if any(option.value == earlier for option in choices):
                self._known[question] = earlier
                self._assume_decided(prompt, str(earlier), operation)
            else:
                self._known[question] = self._answer(kind, prompt, choices, operation)

        chosen = self._known[question]
        if chosen is None:
            raise NotBound

        return chosen

    def _assume_decided(self, prompt: Text, value: str, operation: int | None) -> None:
        """Note that an answer from earlier in the conversation decides."""
        text = Text(
            f"按之前的回答：{prompt.zh} {value}", f"As answered before: {prompt.en} {value}"
        )
        self._note("decided_before", text, operation, "user")

    def _answer(
        self, kind: AmbiguityKind, prompt: Text, choices: Sequence[Choice], operation: int | None
    ) -> str | None:
        """Return the user's answer; None: it is noted that the user has to be asked."""
        self._asked[kind] += 1
        number = self._asked[kind]
        id_ = kind if number == 1 else f"{kind}_{number}"
        answer = self._answers.get(id_)
        if any(choice.value == answer for choice in choices):
            return answer

        question = Ambiguity(
            id=id_,
            kind=kind,
            prompt=prompt.to(self._lang),
            choices=list(choices),
            operation=operation,
        )
        self.ambiguities.append(question)
        return None

    def assume(
        self,
        id_: str,
        text: Text,
        operation: int | None = None,
        *,
        decides: Decision,
        is_semantic: bool = False,
    ) -> None:
        """Note what was decided without asking; what is noted already is not noted again.

        Args:
            decides: the rows that would be others if it had been decided otherwise.
        """
        decided_by: DecidedBy = "semantic" if is_semantic else "default"
        self._note(id_, text, operation, decided_by, decides)

    def _note(
        self,
        id_: str,
        text: Text,
        operation: int | None,
        decided_by: DecidedBy,
        decides: Decision = _NO_ROWS,
    ) -> None:
        if operation is not None:
            id_ = f"{id_}_{operation}"

        shown_text = text.to(self._lang)
        if any(earlier.id == id_ and earlier.text == shown_text for earlier in self.assumptions):
            return

        number = sum(earlier.id.startswith(id_) for earlier in self.assumptions)
        assumption = Assumption(
            id=f"{id_}_{number + 1}" if number else id_,
            text=shown_text,
            operation=operation,
            decided_by=decided_by,
        )
        self.assumptions.append(assumption)
        self.decisions[assumption.id] = decides

    def refuse(self, kind: ImpossibleKind, text: Text, suggestions: Sequence[str] = ()) -> NotBound:
        """Note what is not possible, once; return what is to be raised."""
        impossible = Impossible(kind=kind, text=text.to(self._lang), suggestions=list(suggestions))
        if impossible not in self.impossible:
            self.impossible.append(impossible)

        return NotBound()


def choice(value: str, label: str | None = None) -> Choice:
    """Return a choice that is shown as its value unless `label` says otherwise."""
    return Choice(value=value, label=label or value)


def choices_of(values: Iterable[str]) -> list[Choice]:
    """Return choices that are shown as their values."""
    return [choice(value) for value in values]
