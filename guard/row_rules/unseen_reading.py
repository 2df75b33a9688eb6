"""Refuses what may read rows without naming a table: functions of users and extensions, and what
calls them.

What such a function reads is not in the statement, and it runs past the rewriting. The operator may
open one to actors under rules by name (`open.functions`), beyond allowing it to everybody.
"""

from common.errors import ForbiddenObject
from guard import Guard, ServerFacts
from guard.refusal_texts import refusal_of_object
from guard.row_rules import texts
from sqltree.parsing import Node


class UnseenReading:
    """Judges whether all that a statement reads is named in it.

    Args:
        functions: those that the operator opens, `schema.name` each.
    """

    def __init__(self, functions: frozenset[str]) -> None:
        self._guard = Guard(allowed_functions=functions, hides_rows=True)

    def check(self, statement: str, facts: ServerFacts) -> None:
        """Check that a statement reads only what it names: it calls no function that may read rows.

        Raises:
            StatementRejected: it may read something else.
        """
        self._guard.learn(facts)
        try:
            self._guard.check(statement)
        except ForbiddenObject as error:
            schema, _, name = error.name.rpartition(".")
            if schema not in facts.routines.get(name, ()):
                raise

            raise refusal_of_object(error.name, texts.FUNCTION) from error

    def qualify(self, select: Node) -> bool:
        """See `Guard.qualify`; by what was learnt for the last statement that was judged."""
        return self._guard.qualify(select)
