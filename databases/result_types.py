"""The types of result columns by OID: those of PostgreSQL's core are known, others are asked for when they occur."""

from collections.abc import Mapping

from common.postgres.connection import Connection
from databases.value_rendering import CORE_TYPES, PgType

# Arrays of a domain are rendered as arrays of its base type. `typarray` tells arrays from vectors such as int2vector.
_TYPES_QUERY = """
SELECT t.oid, t.typname, CASE WHEN e.typtype = 'd' THEN e.typbasetype ELSE e.oid END, t.typdelim
FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem AND e.typarray = t.oid
WHERE t.oid IN ({oids})
"""


class ResultTypes:
    """What is known of one database's types."""

    def __init__(self) -> None:
        self._known: dict[int, PgType] = dict(CORE_TYPES)

    async def of(self, columns: tuple[tuple[str, int], ...], connection: Connection) -> Mapping[int, PgType]:
        """Types by OID, among them those of `columns` (name, OID) and of their elements. Raises psycopg2's errors."""
        oids = {oid for _, oid in columns}
        while missing := oids - self._known.keys():
            found = await connection.query(_TYPES_QUERY.format(oids=", ".join(map(str, missing))))
            for oid, name, element, delimiter in found.rows:
                self._known[int(oid or 0)] = PgType(name or "", int(element or 0), delimiter or ",")
            for number in missing - self._known.keys():
                self._known[number] = PgType(str(number))
            oids = {self._known[number].element for number in missing} - {0}
        return self._known
