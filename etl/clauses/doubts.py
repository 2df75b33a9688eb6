"""What a request leaves open, asked once, and the answers that were given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from common.text import Lang, Text
from etl.schemas.requirement import (
    Ambiguity,
    AmbiguityKind,
    Assumption,
    Choice,
    Impossible,
    ImpossibleKind,
)


@dataclass
class Doubts:
    """Collects questions, assumptions and what is not possible while a request is read.

    Attributes:
        answers: the values chosen so far, by the question's id.
        used: ids of the answers that were needed.
    """

    lang: Lang
    answers: Mapping[str, str]
    ambiguities: list[Ambiguity] = field(default_factory=list)
    assumptions: list[Assumption] = field(default_factory=list)
    impossible: list[Impossible] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    _asked: dict[str, int] = field(default_factory=dict)
    _known: dict[tuple[str, str, tuple[str, ...]], str] = field(default_factory=dict)

    def choose(
        self, kind: AmbiguityKind, prompt: Text, choices: Sequence[Choice], order: int
    ) -> str | None:
        """Return the value that was chosen; None when the question has to be put first.

        The same question is put once, wherever it comes up again.
        """
        values = tuple(choice.value for choice in choices)
        text = prompt.to(self.lang)
        question = (kind, text, values)
        identity = self._known.get(question)
        is_new = identity is None
        if identity is None:
            identity = self._next_id(kind)
            self._known[question] = identity
        answer = self.answers.get(identity)
        if answer in values:
            self.used.add(identity)
            return answer
        if is_new:
            self.ambiguities.append(
                Ambiguity(
                    id=identity, kind=kind, prompt=text, choices=list(choices), operation=order
                )
            )
        return None

    def _next_id(self, kind: str) -> str:
        count = self._asked.get(kind, 0) + 1
        self._asked[kind] = count
        return kind if count == 1 else f"{kind}_{count}"

    def assume(self, identity: str, text: Text, order: int) -> None:
        """Note what was decided without asking."""
        if all(known.id != identity for known in self.assumptions):
            self.assumptions.append(
                Assumption(id=identity, text=text.to(self.lang), operation=order)
            )

    def refuse(self, kind: ImpossibleKind, text: Text, suggestions: Sequence[str] = ()) -> None:
        """Note what can't be built."""
        refusal = Impossible(kind=kind, text=text.to(self.lang), suggestions=list(suggestions))
        if refusal not in self.impossible:
            self.impossible.append(refusal)
