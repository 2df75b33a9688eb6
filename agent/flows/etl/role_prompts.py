"""What the roles tell the model: instructions of Citu's own, and everything else as data."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent.experience import Recollection
from agent.flows.etl.state import EtlState
from agent.thinking.llm.prompt_files import prompt
from agent.thinking.llm.question_parts import QuestionParts
from agent.tools.entry_lines import safe_values
from agent.tools.schema_tools import SchemaReader
from common.inquiry import Inquiry
from common.values import Catalog, Table
from knowledge.language.safe_text import cut_off
from llm import Message

_SCHEMA_TOKENS = 8_000  # of the tables that the intent names
_MOST_CHARS = 40_000  # of one part that is JSON


class RolePrompts:
    """Writes the first messages of the roles' conversations.

    Args:
        parts: writes what is known of a request in words.
        reader: describes tables.
        recollection: gives what has been learnt, as the user may see it.
    """

    def __init__(
        self, parts: QuestionParts, reader: SchemaReader, recollection: Recollection
    ) -> None:
        self._parts = parts
        self._reader = reader
        self._recollection = recollection

    async def of_request(
        self, name: str, state: EtlState, catalog: Catalog, **data: Any
    ) -> list[Message]:
        """Return the prompt of that name, for the request in words; `data` is JSON."""
        parts = await self._request_parts(state, catalog)
        today = str(state["options"]["today"])
        return prompt(name, state["lang"], today=today, **parts, **_texts(data))

    async def of_tables(
        self,
        name: str,
        state: EtlState,
        catalog: Catalog,
        tables: Sequence[Table],
        **data: Any,
    ) -> list[Message]:
        """Return the prompt of that name, for an intent over these tables; `data` is JSON."""
        parts = await self._request_parts(state, catalog)
        described = await self._reader.described(catalog)
        own = [catalog.by_key[table.key] for table in tables if table.key in catalog.by_key]
        schema, _ = await asyncio.to_thread(described.some, own, state["question"], _SCHEMA_TOKENS)
        learnt = {key: parts[key] for key in ("examples", "lessons")}
        return prompt(name, state["lang"], schema=schema, **learnt, **_texts(data))

    async def _request_parts(self, state: EtlState, catalog: Catalog) -> dict[str, str]:
        """Return the parts about the request in words: schema, what was learnt, stored values.

        The conversation before is not among them.
        """
        inquiry = Inquiry(state["question"], state["lang"], catalog)
        experience = await self._recollection.recalled(inquiry)
        within = await self._parts.within(replace(inquiry, experience=experience))
        parts = within(self._parts.budget)
        parts.pop("history")
        return parts


def _texts(data: dict[str, Any]) -> dict[str, str]:
    """Return the parts as JSON of texts that can't pass for anything but data."""
    written = {}
    for key, value in data.items():
        text = json.dumps(safe_values(value), ensure_ascii=False)
        written[key] = cut_off(text, _MOST_CHARS)

    return written
