"""Refuses what may read rows without naming a table: functions of users and extensions, and what calls them.

What such a function reads is not in the statement, and it runs past the rewriting. The operator may open one to actors
under rules by name (`open.functions`), beyond allowing it to everybody.
"""

from common.errors import ForbiddenObject
from databases.guard import Guard, ServerFacts
from databases.guard.parsing import parse
from databases.guard.refusal_texts import READS_CLOSED, refused
from databases.guard.walk import walk
from databases.row_rules import texts


class UnseenReading:
    """Judges statements.

    Args:
        functions: those that the operator opens, `schema.name` each.
    """

    def __init__(self, functions: frozenset[str]) -> None:
        self._guard = Guard(allowed_functions=functions)

    def refuse(self, statement: str, facts: ServerFacts) -> None:
        """Returns when all that the statement reads is named in it.

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
            raise refused(error.name, texts.FUNCTION) from error
        if facts.reading_operators or facts.reading_cast_types:
            _refuse_reading(statement, facts)


def _refuse_reading(statement: str, facts: ServerFacts) -> None:
    """Refuses operators and casts that call functions of users that may read tables."""
    (parsed,) = parse(statement)
    found = walk(parsed.kind, parsed.node)
    reading = [name for name in found.operators if name and name[-1] in facts.reading_operators]
    reading += [name for name, _ in found.casts if name[-1] in facts.reading_cast_types]
    for called in reading:
        raise refused(".".join(called), READS_CLOSED)
