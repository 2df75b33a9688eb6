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


class UnaskedReading:
    """Judges the relations of the server that `facts` describe."""

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts
        self._guard = Guard()
        self._guard.learn(facts)
        self._verdicts: dict[Key, bool] = {}
        foreign = [key for key, conditions in facts.read_conditions.items() if None in conditions]
        self._has_foreign_parts = frozenset(
            parent for key in foreign for parent in facts.parents.get(key, ())
        )

    def is_harmless(self, key: Key) -> bool:
        """Tell whether reading it, and all that it reads in turn, runs only what is accepted."""
        if key not in self._verdicts:
            self._verdicts[key] = True  # a policy may read its own table
            self._verdicts[key] = self._judge(key)
        return self._verdicts[key]

    def _judge(self, key: Key) -> bool:
        facts = self._facts
        conditions = facts.read_conditions.get(key, ())
        if not facts.is_followable or facts.read_functions.get(key):
            return False
        if self._guard.may_run(key) or None in conditions or key in self._has_foreign_parts:
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
        """Yield the relations that the query reads; raises `StatementRejected` for a refused one."""
        self._guard.check(query)
        (statement,) = parse(query)
        for relation in walk(statement.kind, statement.node).relations:
            yield self._facts.key(relation.schema, relation.name)
