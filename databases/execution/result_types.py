"""The types of result columns by OID: PostgreSQL's core types are known, others are looked up."""

from collections.abc import Collection, Mapping

from databases.execution.value_rendering import CORE_TYPES, PgType
from postgres.connection import Connection

# Arrays of a domain are rendered as arrays of its base type. `typarray` tells arrays from vectors
# such as int2vector.
_TYPES_QUERY = """
SELECT t.oid, t.typname, CASE WHEN e.typtype = 'd' THEN e.typbasetype ELSE e.oid END, t.typdelim
FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem AND e.typarray = t.oid
WHERE t.oid IN ({oids})
"""


class ResultTypes:
    """The types of one database, as far as they have occurred."""

    def __init__(self) -> None:
        self._known: dict[int, PgType] = dict(CORE_TYPES)

    async def of(
        self, columns: tuple[tuple[str, int], ...], connection: Connection
    ) -> Mapping[int, PgType]:
        """Return types by OID, among them those of `columns` (name, OID) and of their elements.

        Raises psycopg2's errors.
        """
        missing = {oid for _, oid in columns} - self._known.keys()
        while missing:
            await self._look_up(missing, connection)
            elements = {self._known[oid].element for oid in missing} - {0}
            missing = elements - self._known.keys()

        return self._known

    async def _look_up(self, oids: Collection[int], connection: Connection) -> None:
        results = await connection.query(_TYPES_QUERY.format(oids=", ".join(map(str, oids))))
        self._known |= {unknown: PgType(str(unknown)) for unknown in oids}
        for oid, name, element, delimiter in results.rows:
            self._known[int(oid)] = PgType(name, int(element or 0), delimiter)
