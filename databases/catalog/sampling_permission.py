"""Judges which relations Citu may read by itself, to sample values: those whose reading runs
nothing harmful.

Reading a table is a scan. Reading a view runs its query, and reading a table with row-level
security runs its policies, with every function in them. These are judged like statements, but
functions that the operator allows for questions don't count as allowed here. Foreign tables are
never read: the load would fall on another server.
"""

from collections.abc import Iterator
from itertools import chain

from common.errors import StatementRejected
from guard import Guard, ServerFacts
from guard.facts import Key
from guard.walk import walk
from sqltree.parsing import parse


class SamplingPermission:
    """Judges the relations of the server that `facts` describe."""

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts
        self._guard = Guard()
        self._guard.learn(facts)
        self._verdicts: dict[Key, bool] = {}
        has_foreign_parts: set[Key] = set()
        for key, conditions in facts.read_conditions.items():
            if None in conditions:  # it is a foreign table
                has_foreign_parts.update(facts.parents.get(key, ()))

        self._has_foreign_parts = frozenset(has_foreign_parts)

    def is_harmless(self, key: Key) -> bool:
        """Tell whether reading it, and all that it reads in turn, runs only what is accepted."""
        if key not in self._verdicts:
            self._verdicts[key] = True  # a policy may read its own table
            self._verdicts[key] = self._judge(key)

        return self._verdicts[key]

    def _judge(self, key: Key) -> bool:
        facts = self._facts
        if not facts.is_followable:
            return False
        if facts.read_functions.get(key) or self._guard.may_run(key):
            return False

        conditions = facts.read_conditions.get(key, ())
        is_foreign = None in conditions or key in self._has_foreign_parts
        if is_foreign:
            return False

        queries = [f"SELECT WHERE {condition}" for condition in conditions]
        if key in facts.view_definitions:
            queries.append(facts.view_definitions[key])

        try:
            reads = chain.from_iterable(map(self._reads, queries))
            return all(map(self.is_harmless, reads))
        except (StatementRejected, ValueError, RecursionError):
            return False

    def _reads(self, query: str) -> Iterator[Key]:
        """Yield the relations that the query reads; raises `StatementRejected`."""
        self._guard.check(query)
        (statement,) = parse(query)
        for relation in walk(statement.kind, statement.node).relations:
            yield self._facts.key(relation.schema, relation.name)
