"""Names of columns that are made from those of tables and their columns."""

from knowledge.language.inflection import singular


def name_with_table(table: str, column: str) -> str:
    """Return a column's name with its table's before it, unless it begins with that already."""
    lowered = column.lower()
    for begin in (table.lower(), singular(table.lower())):
        if lowered == begin or lowered.startswith(f"{begin}_"):
            return column

    return f"{table}_{column}"
