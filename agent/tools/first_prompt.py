"""How a conversation with a model about one question begins: instructions, what is known, and the
question last.

Whatever people or the database have written (names, comments, stored values, earlier turns,
examples, notes) stands in the user's message, between tags; the system message is Citu's own words
alone. Of earlier turns only questions, SQL and answers are told, never calls of tools.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date

from agent.thinking.llm.prompt_files import passage, prompt
from agent.thinking.llm.question_parts import QuestionParts, shorter, table_hint
from common.inquiry import Inquiry
from llm import Message
from llm.tokens import PromptBudget


@dataclass(frozen=True)
class FirstPrompt:
    """The first messages.

    Attributes:
        messages: the system's and the user's.
        parts: texts of the user's message by name, such as `schema`.
        has_whole_schema: whether it shows all tables with all of their columns.
        shortened: makes the same with about half of what it tells, which can't be shortened again.
    """

    messages: tuple[Message, ...]
    parts: Mapping[str, str]
    has_whole_schema: bool
    shortened: Callable[[], "FirstPrompt"] | None = None


class FirstPrompts:
    """Writes first prompts.

    Args:
        parts: writes what is known of a question.
        today: gives the day that prompts call today.
    """

    def __init__(self, parts: QuestionParts, *, today: Callable[[], date] = date.today) -> None:
        self._parts = parts
        self._today = today

    async def write(self, inquiry: Inquiry, flow: str) -> FirstPrompt:
        """Return the first prompt for a question to the flow of that name;
        `prompts/steps_of_<flow>.md` says how it works.
        """
        schema = await self._parts.schema(inquiry)
        parts_within = await self._parts.within(inquiry, "tools")
        placeholders = {"table_hint": table_hint(inquiry.table), "today": self._today().isoformat()}
        steps = passage(f"steps_of_{flow}")

        def within(budget: PromptBudget) -> FirstPrompt:
            parts = parts_within(budget)
            messages = prompt(
                "answer_with_tools", inquiry.lang, steps=steps, **parts, **placeholders
            )
            return FirstPrompt(tuple(messages), parts, schema.fits(budget.schema))

        whole = within(self._parts.budget)
        return replace(whole, shortened=lambda: within(shorter(self._parts.budget, whole.parts)))
