"""The guard: proves from a statement's text alone that it is one harmless query, on PostgreSQL's own parse tree.

    parsing    text → tree, for any input, in bounded time
    grammar    which node types a query may consist of
    walk       the tree → what it reads and calls
    scopes     which CTEs are visible where
    rules      which schemas, tables and columns the operator opens
    access     what that means for the server's tables, views and partitions
    showing    the part of the catalogue that may be read
    functions  which functions may be called
    rows       which fields are columns, and not functions written like ones
    literals   numbers that an older server reads as something else
    casts      which types may be named and turned into
    values     what may be done with values of types that the user's own operators and casts are for
    carriers   which expressions have values of such types
    operators  which operators of the user's for built-in types may be meant
    objects    which tables, types and special values may be named
    xpath      which XPaths may be evaluated
    lengths    how long the values may get that a query builds, with the modules `*_sizes` that its docstring lists
    facts      what the connected server has

Everything is an allow-list: what is not known to belong to a query is refused.
"""

import logging
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from common.errors import DatabaseUnavailable, ForbiddenStatement, InvalidSql, StatementRejected
from common.text import Text
from common.values import Catalog
from databases.guard import lengths
from databases.guard.access import AccessCheck
from databases.guard.casts import TypeRule
from databases.guard.facts import BUILTIN, ServerFacts
from databases.guard.functions import Call, FunctionRule
from databases.guard.grammar import NUMBERS_SINCE, operation_of
from databases.guard.literals import refuse_new_numbers
from databases.guard.objects import ObjectRule
from databases.guard.parsing import Statement, parse
from databases.guard.rows import FieldCheck
from databases.guard.rules import EVERYTHING, AccessRuleError, AccessRules, parse_rule
from databases.guard.showing import visible
from databases.guard.values import ValueRule
from databases.guard.walk import Findings, Name, walk

__all__ = ["BUILTIN", "AccessRuleError", "AccessRules", "Guard", "Inspection", "ServerFacts", "parse_rule"]

_log = logging.getLogger(__name__)

_REMEMBERED = 256  # verdicts kept: a statement is checked, planned and run within moments

_NOT_FOLLOWABLE = Text(
    "数据库隐藏了部分系统目录，无法执行 ALLOWED_OBJECTS 和 DENIED_OBJECTS。",
    "The server hides parts of its catalogue: ALLOWED_OBJECTS and DENIED_OBJECTS can't be kept.",
)


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
        forbidden_check: when false, only the structure is judged: one statement, and nothing but a query. Without
            effect where `access` closes anything: functions that run SQL and the system's tables would show it.
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
        self._forbidden_check = forbidden_check or bool(access)
        self._idle_denials: frozenset[Name] = frozenset()
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
        self._types = TypeRule(facts, self._functions)
        self._values = ValueRule(facts, self._types)
        self._access = self._check_of(facts)
        self._verdicts = OrderedDict()

    def _check_of(self, facts: ServerFacts) -> AccessCheck:
        return AccessCheck(self.access, facts, FunctionRule(facts, self._allowed_functions).is_configured)

    def visible(self, catalog: Catalog, facts: ServerFacts) -> Catalog:
        """The part of `catalog` that statements may read on the server that `facts` describe.

        Says in the log, once, which denials cover nothing there.

        Raises:
            DatabaseUnavailable: the server does not tell what views read, so the operator's rules can't be kept.
        """
        if self.access and not facts.is_followable:
            raise DatabaseUnavailable(_NOT_FOLLOWABLE)
        check = self._check_of(facts)
        idle = frozenset(check.idle_denials())
        for rule in sorted(idle - self._idle_denials):
            _log.warning(
                "DENIED_OBJECTS: %s is nothing in the database; write names as they are stored", ".".join(rule)
            )
        self._idle_denials = idle
        return visible(catalog, check)

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
        if 0 < self._facts.version < NUMBERS_SINCE * 10_000:
            refuse_new_numbers(statement.text)
        found.calls = self._functions.as_read(found.calls, found.syntax)
        refusal = self._first_refusal(found, statement) if self._forbidden_check else None
        refusal = refusal or next(self._access.refusals(found), None)
        if refusal is not None:
            raise _located(refusal, statement)
        overshadowed = filter(self._functions.is_overshadowed, found.calls) if self._forbidden_check else ()
        return _inspection(statement, found, overshadowed)

    def _first_refusal(self, found: Findings, statement: Statement) -> StatementRejected | None:
        rules = (
            self._objects.refusals(found),
            self._types.refusals(found),
            self._values.refusals(found, statement.text),
        )
        for refusal in chain.from_iterable(rules):
            return refusal
        refusals = [*self._field_refusals(found, statement.text), *map(self._functions.judge, found.calls)]
        refused = [refusal for refusal in refusals if refusal is not None]
        # What is forbidden is said before what is merely missing, so that a repair can't be tried on it.
        refused.sort(key=lambda refusal: isinstance(refusal, InvalidSql))
        if not refused and lengths.may_grow(found, len(statement.data)):
            return lengths.refusal(statement.node, len(statement.data))
        return refused[0] if refused else None

    def _field_refusals(self, found: Findings, text: str) -> Iterator[StatementRejected]:
        """Those of functions written like fields. The statement is looked at again only if a field may be one."""
        judged = {name: self._functions.judge_field(name) or self._types.judge_call((name,)) for name in found.fields}
        refusals = {name: refusal for name, refusal in judged.items() if refusal is not None}
        if refusals:
            doubtful = FieldCheck(self._facts).doubtful(parse(text)[0].node)
            yield from (refusals[name] for name in doubtful if name in refusals)


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
        if not data[place:].lower().startswith((b"pg_catalog", b'"pg_catalog"')):
            data = data[:place] + b"pg_catalog." + data[place:]
    return data.decode("utf-8")


def _sorted(names: Iterable[Name]) -> tuple[str, ...]:
    return tuple(sorted({".".join(name) for name in names}))
