"""What readers call a column of keys, where nothing but its identifier says it."""

from common.text import Lang, Text
from common.values import Catalog, Column, Table
from knowledge.language.cutting import has_han
from knowledge.language.spoken_names import spoken_name

_KEY = Text("编号", "id")
_KEY_OF = Text("{}编号", "{} id")


def column_name(column: Column, table: Table | None, catalog: Catalog, lang: Lang) -> str:
    """Return a name for sentences and labels.

    In Chinese, a key without a name is called after the table that it leads to: `member_id` is
    会员编号 where the table has a Chinese name.
    """
    name = spoken_name(column, lang)
    if lang != "zh" or has_han(name) or table is None:
        return name

    leads_to = _referred(column, table, catalog)
    if leads_to is not None:
        target = spoken_name(leads_to, lang)
        return _KEY_OF.to(lang).format(target) if has_han(target) else name

    is_own_key = table.primary_key == (column.name,)
    return _KEY.to(lang) if is_own_key and has_han(spoken_name(table, lang)) else name


def _referred(column: Column, table: Table, catalog: Catalog) -> Table | None:
    """Return the table that the column alone refers to."""
    for key in table.foreign_keys:
        if key.columns == (column.name,):
            return catalog.by_key.get(key.target)

    return None
