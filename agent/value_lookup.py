"""Looks up the stored values that a question names in words that nothing else explains."""

from collections.abc import Awaitable, Callable
from functools import partial

from common.inquiry import Inquiry, StoredValue
from common.ports import Database
from knowledge.values.value_search import ValueSearch
from rules.linking.unexplained import wanted_values
from rules.schema.lexicon import LEXICON
from rules.steps import compute_step

LookUp = Callable[[Inquiry, bool], Awaitable[tuple[StoredValue, ...]]]
"""Gives the stored values that a question names in columns of which not all values are known.

Never raises.

The second argument says whether the question is known to be about the data.
"""


async def nothing_stored(_inquiry: Inquiry, _is_data: bool) -> tuple[StoredValue, ...]:
    """Find no values: the `LookUp` of whoever looks nothing up."""
    return ()


def looking_up(search: ValueSearch, database: Database) -> LookUp:
    """Return the `LookUp` of one question, over its guarded and audited database."""

    async def look_up(inquiry: Inquiry, is_data: bool) -> tuple[StoredValue, ...]:
        if not search.is_on or not inquiry.catalog.tables:
            return ()

        await LEXICON.ready(inquiry.catalog)
        request = await compute_step(partial(wanted_values, inquiry, is_data=is_data), inquiry)
        found = await search.find(request, inquiry.catalog, database)
        return found.values

    return look_up
