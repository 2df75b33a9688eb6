"""What reading and binding a request found out: questions, assumptions, what is not possible."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from common.text import Lang, Text
from etl.meaning.decisions import Decision
from etl.schemas.requirement import (
    Ambiguity,
    AmbiguityKind,
    AnalysisResult,
    Assumption,
    Choice,
    Impossible,
    ImpossibleKind,
    UserIntent,
)

CANCEL = "__cancel__"


class NotBound(Exception):
    """A part of the intent can't be bound; why has been noted."""


class RequestFindings:
    """Collects what is found; questions that were answered are not asked again.

    A sentence is read first, and its intent bound then, with one object for both: the ids of
    questions, numbered by kind, are those of one sequence.

    Args:
        answers: the values of choices, by the ids of ambiguities.
        lang: of the texts.
    """

    def __init__(self, answers: Mapping[str, str], lang: Lang) -> None:
        self._answers = answers
        self._lang = lang
        self._asked: Counter[str] = Counter()
        self._known: dict[tuple[str, str], str | None] = {}
        self.ambiguities: list[Ambiguity] = []
        self.assumptions: list[Assumption] = []
        self.impossible: list[Impossible] = []
        self.decisions: dict[str, Decision] = {}

    @property
    def is_clear(self) -> bool:
        """Tell whether nothing is open and nothing impossible."""
        return not self.ambiguities and not self.impossible

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
        known = (kind, topic)
        if known not in self._known:
            self._known[known] = self._answer(kind, prompt, choices, operation)
        chosen = self._known[known]
        if chosen is None:
            raise NotBound
        return chosen

    def _answer(
        self, kind: AmbiguityKind, prompt: Text, choices: Sequence[Choice], operation: int | None
    ) -> str | None:
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
        if operation is not None:
            id_ = f"{id_}_{operation}"
        shown = text.to(self._lang)
        if any(one.id == id_ and one.text == shown for one in self.assumptions):
            return
        number = sum(one.id.startswith(id_) for one in self.assumptions)
        assumption = Assumption(
            id=f"{id_}_{number + 1}" if number else id_,
            text=shown,
            operation=operation,
            decided_by="semantic" if is_semantic else "default",
        )
        self.assumptions.append(assumption)
        self.decisions[assumption.id] = decides

    def refuse(self, kind: ImpossibleKind, text: Text, suggestions: Sequence[str] = ()) -> NotBound:
        """Note what is not possible, once; return what is to be raised."""
        found = Impossible(kind=kind, text=text.to(self._lang), suggestions=list(suggestions))
        if found not in self.impossible:
            self.impossible.append(found)
        return NotBound()


def choice(value: str, label: str | None = None) -> Choice:
    """Return a choice that is shown as its value unless `label` says otherwise."""
    return Choice(value=value, label=label or value)
