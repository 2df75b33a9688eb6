"""The guard: proves from a statement's text alone that it is one harmless query, on PostgreSQL's own parse tree.

    parsing    text → tree, for any input, in bounded time
    grammar    which node types a query may consist of
    walk       the tree → what it reads and calls
    access     which tables and columns the operator opens
    functions  which functions may be called
    objects    which tables, types and special values may be named
    xpath      which XPaths may be evaluated
    lengths    how long the values may get that a query builds
    facts      what the connected server has

Everything is an allow-list: what is not known to belong to a query is refused.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from common.database.guard import lengths
from common.database.guard.access import EVERYTHING, AccessCheck, AccessRuleError, AccessRules, parse_rule
from common.database.guard.facts import BUILTIN, ServerFacts
from common.database.guard.functions import Call, FunctionRule
from common.database.guard.grammar import operation_of
from common.database.guard.objects import ObjectRule
from common.database.guard.parsing import Statement, parse
from common.database.guard.walk import Findings, Name, walk
from common.errors import ForbiddenStatement, InvalidSql, StatementRejected
from common.text import Text

__all__ = ["BUILTIN", "AccessRuleError", "AccessRules", "Guard", "Inspection", "ServerFacts", "parse_rule"]

_REMEMBERED = 256  # verdicts kept: a statement is checked, planned and run within moments


@dataclass(frozen=True)
class Inspection:
    """What a proven query uses, as written, each once, in alphabetical order.

    Attributes:
        statement: the text without the terminating semicolon and what follows it, to be run. Built-in functions whose
            name a function with side effects shares are qualified in it, so that the server can't choose the other.
        tables: `name` or `schema.name`; CTEs are not tables.
        functions: names as called, qualified where the statement (or PostgreSQL's grammar) qualifies them.
        columns: references as written (`name`, `t.name`, `t.*`, `*`).
    """

    statement: str
    tables: tuple[str, ...]
    functions: tuple[str, ...]
    columns: tuple[str, ...]


class Guard:
    """Judges statements.

    Args:
        allowed_functions: user-defined and extension functions that may be called: `schema.name`, `schema.*` or `name`.
        access: what may be read; always enforced.
        forbidden_check: when false, only the structure is judged: one statement, and nothing but a query.
    """

    def __init__(
        self,
        *,
        allowed_functions: Collection[str] = (),
        access: AccessRules = EVERYTHING,
        forbidden_check: bool = True,
    ) -> None:
        self.access = access
        self._allowed_functions = frozenset(allowed_functions)
        self._forbidden_check = forbidden_check
        self._verdicts: OrderedDict[str, Inspection] = OrderedDict()
        self._adopt(BUILTIN)

    def learn(self, facts: ServerFacts) -> None:
        """From now on judges by what the connected server has."""
        if facts is not self._facts:
            self._adopt(facts)

    def _adopt(self, facts: ServerFacts) -> None:
        self._facts = facts
        self._functions = FunctionRule(facts, self._allowed_functions)
        self._objects = ObjectRule(facts)
        self._access = AccessCheck(self.access, facts)
        self._verdicts = OrderedDict()

    def check(self, sql: str) -> None:
        """Returns when `sql` is one harmless query.

        Raises:
            ForbiddenStatement, ForbiddenObject, InvalidSql, ValidationFailed: as `Database.inspect` says.
        """
        self.inspect(sql)

    def inspect(self, sql: str) -> Inspection:
        """What the query uses; raises what `check` raises."""
        verdicts = self._verdicts  # another thread may learn new facts meanwhile: what was judged by the old is dropped
        verdict = verdicts.get(sql)
        if verdict is None:
            verdict = self._judge(sql)
            verdicts[sql] = verdict
            while len(verdicts) > _REMEMBERED:
                verdicts.popitem(last=False)
        return verdict

    def remembered(self, sql: str) -> Inspection | None:
        """What the query uses, if it was proven lately by what is known now."""
        return self._verdicts.get(sql)

    def _judge(self, sql: str) -> Inspection:
        statement = _only_query(parse(sql))
        found = walk(statement.kind, statement.node)
        refusal = self._first_refusal(found, statement) if self._forbidden_check else None
        refusal = refusal or next(self._access.refusals(found), None)
        if refusal is not None:
            raise _located(refusal, statement)
        overshadowed = filter(self._functions.is_overshadowed, found.calls) if self._forbidden_check else ()
        return _inspection(statement, found, overshadowed)

    def _first_refusal(self, found: Findings, statement: Statement) -> StatementRejected | None:
        for refusal in self._objects.refusals(found):
            return refusal
        read = {self._facts.key(relation.schema, relation.name) for relation in found.relations}
        fields = [self._functions.judge_field(name, read) for name in found.fields]
        verdicts = [*fields, *map(self._functions.judge, found.calls)]
        refusals = [refusal for refusal in verdicts if refusal is not None]
        # What is forbidden is said before what is merely missing, so that a repair can't be tried on it.
        refusals.sort(key=lambda refusal: isinstance(refusal, InvalidSql))
        if not refusals and lengths.may_grow(found, len(statement.data)):
            return lengths.refusal(statement.node, len(statement.data))
        return refusals[0] if refusals else None


def _only_query(statements: list[Statement]) -> Statement:
    if not statements:
        raise InvalidSql("empty statement", sqlstate="42601")
    operations = [operation_of(statement.kind, statement.node) for statement in statements]
    if len(statements) > 1:
        found = ", ".join(operations[:10])
        hint = Text(f"一次只能执行一条语句，收到：{found}。", f"Send one statement at a time; got: {found}.")
        raise ForbiddenStatement("multiple statements", hint=hint)
    if statements[0].kind != "SelectStmt":
        raise ForbiddenStatement(operations[0])
    return statements[0]


def _located(refusal: StatementRejected, statement: Statement) -> StatementRejected:
    """The tree counts bytes; users count characters."""
    if isinstance(refusal, InvalidSql) and refusal.position:
        before = statement.text.encode("utf-8")[: refusal.position - 1]
        refusal.position = len(before.decode("utf-8", "replace")) + 1
    return refusal


def _inspection(statement: Statement, found: Findings, overshadowed: Iterable[Call]) -> Inspection:
    return Inspection(
        statement=_qualified(statement.text, overshadowed),
        tables=_sorted(relation.parts for relation in found.relations),
        functions=_sorted(call.parts for call in found.calls),
        columns=_sorted(found.columns),
    )


def _qualified(text: str, calls: Iterable[Call]) -> str:
    """The text with the calls' names, which stand where the tree says, as `pg_catalog`'s."""
    data = text.encode("utf-8")
    for place in sorted({call.location for call in calls}, reverse=True):
        data = data[:place] + b"pg_catalog." + data[place:]
    return data.decode("utf-8")


def _sorted(names: Iterable[Name]) -> tuple[str, ...]:
    return tuple(sorted({".".join(name) for name in names}))
