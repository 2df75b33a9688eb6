"""Chinese verbs that lead to a table of events by a character of its name: `演` to 演出场次."""

from collections import defaultdict

from knowledge.naming import has_han, table_names
from rules.schema.links import Link, TableKey
from rules.schema.schema import Schema

_WHOLE, _QUALITY = 0.9, 0.62


def verb_characters(schema: Schema) -> dict[str, Link]:
    """The one table of events whose name holds each character."""
    found: defaultdict[str, set[TableKey]] = defaultdict(set)
    for table in schema.catalog.tables:
        if table.kind == "table" and not schema.facts[table.key].is_entity:
            names = [name for name, quality in table_names(table).items() if quality >= _WHOLE and has_han(name)]
            for char in min(names, key=len, default=""):  # without what only says that it is a table
                found[char].add(table.key)
    return {
        char: Link("table", next(iter(keys)), None, None, _QUALITY, char)
        for char, keys in found.items()
        if len(keys) == 1 and has_han(char)
    }
