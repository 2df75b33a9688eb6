"""The lexicon of one question: of its catalogue, with the stored values that were looked up for the question."""

from collections import defaultdict
from copy import copy

from common.inquiry import Inquiry, StoredValue
from knowledge.atoms import key_of
from knowledge.identity import identifies, names_people
from rules.schema.lexicon import Lexicon, lexicon_of
from rules.schema.links import Link

_SPELLED_OTHERWISE = 0.85  # quality, beside 1 of a value that is said as it is stored


def lexicon_for(inquiry: Inquiry) -> Lexicon:
    """The lexicon for the inquiry's question; the catalogue's own one where nothing was looked up."""
    lexicon = lexicon_of(inquiry.catalog)
    if not inquiry.found_values:
        return lexicon
    said = defaultdict[str, list[Link]](list)
    for found in inquiry.found_values:
        if found.is_meant:
            said[found.said].append(_link(found, lexicon))
    knowing = copy(lexicon)
    knowing.said = tuple((words, tuple(links)) for words, links in said.items())
    knowing.offered = tuple((found.said, found.value) for found in inquiry.found_values if not found.is_meant)
    return knowing


def _link(found: StoredValue, lexicon: Lexicon) -> Link:
    table, column = lexicon.schema.table(found.table), lexicon.schema.column(found.table, found.column)
    is_others = names_people(table, column) or identifies(table, column)
    quality = 1.0 if found.is_exact else _SPELLED_OTHERWISE
    return Link("value", found.table, found.column, found.value, quality, key_of(found.said), is_exact=is_others)
