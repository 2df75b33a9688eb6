"""The comments of a hub's tables: those of the source, unless somebody has changed them in the hub.

The note of a source keeps a digest of each comment as it was copied. What the hub has now is
somebody's own where it differs.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping

from psycopg2 import extensions

from common.values import Table
from databases.sources.hub_statements import comment_on

TableKey = tuple[str, str]
TABLE = ""
"""Stands for the table itself among the names of its columns."""

_COMMENTS = """
SELECT n.nspname, c.relname, coalesce(a.attname, ''), d.description
FROM pg_catalog.pg_description d
JOIN pg_catalog.pg_class c ON c.oid = d.objoid
    AND d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.objsubid
    AND d.objsubid > 0
WHERE n.nspname = ANY (%s) AND c.relkind IN ('f', 'v')
"""


class HubComments:
    """The comments in the hub's schemas of a source, read before its tables are made anew.

    Args:
        noted: for each table, the digests of its comments as they were copied last.

    Attributes:
        copied: the same for the tables that were copied since.
    """

    def __init__(
        self,
        cursor: extensions.cursor,
        schemas: Iterable[str],
        noted: Mapping[TableKey, Mapping[str, str]],
    ) -> None:
        self._cursor = cursor
        self._noted = noted
        self._before: defaultdict[TableKey, dict[str, str]] = defaultdict(dict)
        self.copied: dict[TableKey, Mapping[str, str]] = {}
        cursor.execute(_COMMENTS, [list(schemas)])
        for schema, table, column, comment in cursor.fetchall():
            self._before[schema, table][column] = comment

    def copy(self, kind: str, table: Table) -> None:
        """Give a table the comments of the source, and those that somebody has changed.

        Args:
            kind: as SQL names it: `FOREIGN TABLE` or `VIEW`.
            table: as the source describes it, with the hub's schema.
        """
        comments = {column.name: column.comment for column in table.columns if column.comment}
        if table.comment:
            comments[TABLE] = table.comment

        self.copied[table.key] = {name: _digest(comment) for name, comment in comments.items()}
        own = self._changed_in_hub(table.key)
        columns = [(column.name, own.get(column.name, column.comment)) for column in table.columns]
        comment_on(self._cursor, kind, table.key, own.get(TABLE, table.comment), columns)

    def _changed_in_hub(self, key: TableKey) -> Mapping[str, str | None]:
        """Return the comments of a table that somebody has written in the hub, or removed there.

        They are the hub's comments, None for a removed one, by the column's name or `TABLE`.
        """
        digests_as_copied = self._noted.get(key)
        if digests_as_copied is None:
            return {}

        comments = self._before[key]
        changed: dict[str, str | None] = {}
        for name in {*comments, *digests_as_copied}:
            comment = comments.get(name)
            digest = None if comment is None else _digest(comment)
            if digest != digests_as_copied.get(name):
                changed[name] = comment

        return changed


def _digest(comment: str) -> str:
    return hashlib.blake2b(comment.encode(), digest_size=6).hexdigest()
