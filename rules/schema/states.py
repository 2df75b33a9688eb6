"""Whether the rows of a table are in one state or another, which a verb may mean: "returned the most books"."""

from common.meanings import TableKey
from knowledge.stored_values import has_labels
from rules.schema.facts import kind_of
from rules.schema.schema import Schema

_MOST_STATES = 12


def has_states(schema: Schema, key: TableKey) -> bool:
    """Whether the table records events, and a column of it holds yes or no, codes, or one of few texts."""
    table, facts = schema.table(key), schema.facts[key]
    own = {*facts.display, *facts.key, *facts.reference_columns, facts.deleted}
    return not facts.is_entity and any(
        kind_of(column) == "boolean"
        or has_labels(column)
        or (kind_of(column) == "text" and 1 < len(column.values) <= _MOST_STATES)
        for column in table.columns
        if column.name not in own
    )
