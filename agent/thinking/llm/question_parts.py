"""The parts of prompts that are about one question: schema, what was learnt, earlier turns, stored
values, its words.

Each is data, stands between tags of its own and fits a budget.
"""

from collections.abc import Callable, Iterable, Mapping

from agent.thinking.llm.experience_text import experience_parts
from agent.thinking.llm.history_text import HistoryText, HistoryView, history_text
from agent.thinking.llm.repair_hints import mentioned_tables
from agent.thinking.llm.schema_text import SchemaText
from common.inquiry import Inquiry
from common.meanings import TableKey
from common.values import Catalog, Table
from knowledge.index import CatalogIndex, IndexPart
from knowledge.language.safe_text import block, one_line
from knowledge.tables.relevance import Hints
from knowledge.tables.table_vectors import Nearest
from llm.tokens import PromptBudget, estimated_tokens

_MAX_QUESTION = 4_000
_LEADING, _MOST_LED = (
    2,
    6,
)  # examples whose tables are shown before others, and how many these are at most

PartsWithin = Callable[[PromptBudget], dict[str, str]]
"""Gives the parts within a budget by the names that prompts have for them; empty where there is
nothing to say.
"""


class QuestionParts:
    """Writes the parts for the questions about one database.

    Args:
        budget: the most tokens of each part.
        samples: whether stored values may be in them.
        nearest: the tables that mean what a question means, as far as that is known; None: words
            alone rank tables.
    """

    def __init__(
        self, budget: PromptBudget, *, samples: bool = True, nearest: Nearest | None = None
    ) -> None:
        self.budget = budget
        self._samples = samples
        self._nearest = nearest
        self._described = IndexPart(self._describe)

    async def prepare(self, catalog: Catalog) -> None:
        """Describe the catalogue before questions come, because that takes seconds when it is
        large.
        """
        await self._described.ready(catalog)

    async def schema(self, inquiry: Inquiry) -> SchemaText:
        """Return the description of the inquiry's catalogue; made once per catalogue."""
        return await self._described.ready(inquiry.catalog)

    async def within(self, inquiry: Inquiry, view: HistoryView = "sql") -> PartsWithin:
        """Return the maker of all parts; `view` says what they tell of earlier turns."""
        schema = await self.schema(inquiry)
        near = await self._near(schema, inquiry)

        def made(budget: PromptBudget) -> dict[str, str]:
            history = history_text(inquiry.history, view, budget.history)
            return {
                "schema": _relevant(schema, inquiry, history, near, budget.schema),
                **experience_parts(inquiry.experience, budget),
                "history": history.text,
                "values": _values(schema, inquiry, budget.values),
                "question": prompt_question(inquiry),
            }

        return made

    async def within_for_sql(self, inquiry: Inquiry, sql: str) -> PartsWithin:
        """Return the maker of all parts for work on a statement: the tables that it names come
        first.
        """
        schema = await self.schema(inquiry)
        hints = _hints(inquiry, mentioned_tables(sql, schema), await self._near(schema, inquiry))

        def made(budget: PromptBudget) -> dict[str, str]:
            return {
                "schema": schema.details(inquiry.question, hints, budget.schema),
                **experience_parts(inquiry.experience, budget),
                "history": history_text(inquiry.history, "sql", budget.history).text,
                "values": _values(schema, inquiry, budget.values),
                "question": prompt_question(inquiry),
            }

        return made

    async def _near(self, schema: SchemaText, inquiry: Inquiry) -> tuple[TableKey, ...]:
        """Return the tables that mean what the question means; not asked for when all tables are
        shown anyway.
        """
        if self._nearest is None or schema.fits(self.budget.schema):
            return ()

        return await self._nearest(inquiry.catalog, inquiry.question)

    def _describe(self, index: CatalogIndex) -> SchemaText:
        schema = SchemaText(index.catalog, samples=self._samples)
        schema.prepare(self.budget.schema)
        return schema


def prompt_question(inquiry: Inquiry) -> str:
    """Return the question as prompts have it."""
    return block(inquiry.question, _MAX_QUESTION)


def table_hint(table: str | None) -> str:
    """Return a line that names the table which the caller says the question is about; empty when
    they name none.
    """
    if table:
        return f"\nThe user says that the question is about the table {one_line(table, 128)}."

    return ""


def shorter(budget: PromptBudget, parts: Mapping[str, str]) -> PromptBudget:
    """Return the budget for a prompt with `parts` that the model found too long: half of what the
    schema took, and half of the other parts' budgets.
    """
    return budget.halved(estimated_tokens(parts["schema"]))


def _relevant(
    schema: SchemaText,
    inquiry: Inquiry,
    history: HistoryText,
    near: tuple[TableKey, ...],
    budget: int,
) -> str:
    """Return the schema text, with the tables of the last query, because a follow-up may name none
    of them, and with those that the best examples read.
    """
    table = schema.find(inquiry.table) if inquiry.table else None
    first = [table] if table else []
    last = history.last_query
    question = inquiry.question
    if last is not None and last.sql is not None:
        first += mentioned_tables(last.sql, schema)
        question = f"{question}\n{last.question}"

    return schema.details(question, _hints(inquiry, first, near), budget)


def _hints(inquiry: Inquiry, first: Iterable[Table], near: tuple[TableKey, ...]) -> Hints:
    """Return what is known of the question beside its words: tables to show first, those of similar
    questions, values.
    """
    stored_values = inquiry.found_values
    holders = {
        value.said: {one.table for one in stored_values if one.said == value.said}
        for value in stored_values
    }
    return Hints(
        first=tuple(table.key for table in first),
        alike=tuple(
            example.tables[:_MOST_LED] for example in inquiry.experience.examples[:_LEADING]
        ),
        holding={value.table: len(holders[value.said]) for value in stored_values},
        held=tuple((value.table, value.column) for value in stored_values),
        near=near,
    )


def _values(schema: SchemaText, inquiry: Inquiry, tokens: int) -> str:
    """List stored values that the question names, as many as fit; empty when it names none."""
    lines = []
    for line in schema.named_values(inquiry.question, inquiry.found_values).splitlines():
        tokens -= estimated_tokens(f"{line}\n")
        if tokens < 0:
            break

        lines.append(line)

    named = "\n".join(lines)
    return f"<values>\n{named}\n</values>\n\n" if named else ""
