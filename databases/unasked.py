"""What Citu may read when nobody has asked: relations whose reading runs nothing that a question might not run.

Reading a table is a scan. Reading a view runs its query, and reading a table with row-level security its policies, with
every function in them: those are judged like statements, without the functions that the operator opened for questions.
Tables of other servers are never read unasked.
"""

from collections.abc import Iterator

from common.errors import StatementRejected
from databases.guard import Guard, ServerFacts
from databases.guard.facts import Key
from databases.guard.parsing import parse
from databases.guard.walk import walk


class UnaskedReading:
    """Judges the relations of the server that `facts` describe."""

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts
        self._guard = Guard()
        self._guard.learn(facts)
        self._verdicts: dict[Key, bool] = {}
        foreign = [key for key, conditions in facts.read_conditions.items() if None in conditions]
        self._has_foreign_parts = frozenset(parent for key in foreign for parent in facts.parents.get(key, ()))

    def is_harmless(self, key: Key) -> bool:
        """Whether reading the table or view runs nothing but a query that the guard accepts, and so on below it."""
        if key not in self._verdicts:
            self._verdicts[key] = True  # a policy may read its own table
            self._verdicts[key] = self._judge(key)
        return self._verdicts[key]

    def _judge(self, key: Key) -> bool:
        conditions = self._facts.read_conditions.get(key, ())
        if not self._facts.is_followable or self._facts.read_functions.get(key):
            return False
        if None in conditions or key in self._has_foreign_parts:
            return False
        queries = [f"SELECT WHERE {condition}" for condition in conditions]
        if key in self._facts.view_definitions:
            queries.append(self._facts.view_definitions[key])
        try:
            return all(self.is_harmless(read) for query in queries for read in self._reads(query))
        except (StatementRejected, ValueError, RecursionError):
            return False

    def _reads(self, query: str) -> Iterator[Key]:
        """What an accepted query reads; raises `StatementRejected` for others."""
        self._guard.check(query)
        (statement,) = parse(query)
        for relation in walk(statement.kind, statement.node).relations:
            yield self._facts.key(relation.schema, relation.name)
