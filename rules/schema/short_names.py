"""Chinese things by the character that they are called in short: 车 of 教练车, 房 of 房间."""

from collections import defaultdict

from knowledge.naming import has_han, table_names
from rules.schema.links import Link, TableKey
from rules.schema.schema import Schema

_WHOLE, _QUALITY = 0.9, 0.7
_LONGEST = 4  # of a longer name the first or last character says little


def short_names(schema: Schema) -> dict[str, Link]:
    """The one thing whose name ends with each character, else the one whose name begins with it."""
    ends, begins = defaultdict[str, set[TableKey]](set), defaultdict[str, set[TableKey]](set)
    for table in schema.catalog.tables:
        if table.kind != "table" or not schema.facts[table.key].is_entity:
            continue
        for name, quality in table_names(table).items():
            if quality >= _WHOLE and has_han(name) and 1 < len(name) <= _LONGEST:
                ends[name[-1]].add(table.key)
                begins[name[0]].add(table.key)
    found = {**begins, **ends}
    return {
        char: Link("table", next(iter(keys)), None, None, _QUALITY, char)
        for char, keys in found.items()
        if len(keys | begins.get(char, set()) | ends.get(char, set())) == 1
    }
