"""Looks up the stored values that a question names where nothing that is known explains its words."""

from collections.abc import Awaitable, Callable

from common.inquiry import Inquiry, StoredValue
from common.ports import Database
from knowledge.value_search import ValueSearch
from rules.linking.unexplained import wanted_values
from rules.schema.lexicon import LEXICON

LookUp = Callable[[Inquiry, bool], Awaitable[tuple[StoredValue, ...]]]
"""Gives the stored values that a question names in columns of which not all values are known; never raises.

The second argument says whether the question is known to be about the data.
"""


async def nothing_stored(_inquiry: Inquiry, _is_data: bool) -> tuple[StoredValue, ...]:
    """The `LookUp` of whoever looks nothing up."""
    return ()


def looking_up(search: ValueSearch, database: Database) -> LookUp:
    """The `LookUp` of one question, over its guarded and audited database."""

    async def look_up(inquiry: Inquiry, is_data: bool) -> tuple[StoredValue, ...]:
        if not search.is_on or not inquiry.catalog.tables:
            return ()
        await LEXICON.ready(inquiry.catalog)
        return await search.find(wanted_values(inquiry, is_data=is_data), inquiry.catalog, database)

    return look_up
