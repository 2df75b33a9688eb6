"""The guard: proves from a statement's text alone, by PostgreSQL's own parse tree, that it is one harmless query.

    parsing        text → tree, for any input, in bounded time
    grammar        the node types that a query may consist of
    walk           tree → what the query reads and calls
    names          names of tables and functions as a query writes them
    scopes         where which CTEs are visible
    readings       names that a server with another encoding reads as others
    rules          the schemas, tables and columns that the operator opens
    access         what that means for the server's tables, views and partitions
    showing        the part of the catalogue that may be read
    functions      the functions that may be called
    rows           tells columns from functions that are written like columns
    literals       numbers that an older server reads as something else
    casts          the types that may be named and cast to
    user_types     what may be done with values of types for which the user has made operators or casts
    carriers       the expressions that have values of such types
    operators      the user's operators for built-in types that a symbol may mean
    objects        the tables, types and special values that may be named
    xpath          the XPaths that may be evaluated
    lengths        how long the values may get that a query builds; its docstring lists the modules `*_sizes`
    facts          what the connected server has
    refusal_texts  what users are told

Every check is an allow-list: what is not known to be harmless is refused.
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
from databases.guard.names import Name
from databases.guard.objects import ObjectRule
from databases.guard.parsing import Statement, parse
from databases.guard.readings import ReadingRule
from databases.guard.rows import FieldCheck
from databases.guard.rules import EVERYTHING, AccessRuleError, AccessRules, parse_rule
from databases.guard.showing import visible
from databases.guard.user_types import ValueRule
from databases.guard.walk import Findings, walk

__all__ = ["BUILTIN", "AccessRuleError", "AccessRules", "Guard", "Inspection", "ServerFacts", "parse_rule"]

_log = logging.getLogger(__name__)

_REMEMBERED = 256  # verdicts kept, because a statement is checked, planned and run one after the other

_NOT_FOLLOWABLE = Text(
    "数据库隐藏了部分系统目录，无法执行 ALLOWED_OBJECTS 和 DENIED_OBJECTS。",
    "The server hides parts of its catalogue: ALLOWED_OBJECTS and DENIED_OBJECTS can't be kept.",
)


@dataclass(frozen=True)
class Inspection:
    """What a proven query uses, as written, each once, in alphabetical order.

    Attributes:
        statement: the text to run, without the semicolon at its end and what follows. Built-in functions that share
            their name with a function with side effects are qualified, so that the server can't choose that one.
        tables: `name` or `schema.name`; CTEs are not tables.
        functions: names as called, qualified where the statement (or PostgreSQL's grammar) qualifies them.
        columns: references as written (`name`, `t.name`, `t.*`, `*`).
    """

    statement: str
    tables: tuple[str, ...]
    functions: tuple[str, ...]
    columns: tuple[str, ...]


class Guard:
    """Judges statements, and remembers its verdicts: actors with different rights must not share one.

    Args:
        allowed_functions: user-defined and extension functions that may be called: `schema.name`, `schema.*` or `name`.
        access: what may be read; always enforced.
        forbidden_check: when false, only the structure is judged: one statement, and nothing but a query. It stays on
            when `access` closes anything, because functions that run SQL, and system tables, would show that.
    """

    def __init__(
        self,
        *,
        allowed_functions: Collection[str] = (),
        access: AccessRules = EVERYTHING,
        forbidden_check: bool = True,
    ) -> None:
        self.access = access
        self.allowed_functions = frozenset(allowed_functions)
        self._forbidden_check = forbidden_check or bool(access)
        self._idle_denials: frozenset[Name] = frozenset()
        self._verdicts: OrderedDict[str, Inspection] = OrderedDict()
        self._adopt(BUILTIN)

    def learn(self, facts: ServerFacts) -> None:
        """Judges by `facts` from now on; forgets its verdicts when they differ from what it knew."""
        if facts is not self._facts:
            self._adopt(facts)

    def _adopt(self, facts: ServerFacts) -> None:
        self._facts = facts
        self._functions = FunctionRule(facts, self.allowed_functions)
        self._objects = ObjectRule(facts)
        self._types = TypeRule(facts, self._functions)
        self._values = ValueRule(facts, self._types)
        self._readings = ReadingRule(facts)
        self._access = self._check_of(facts)
        self._verdicts = OrderedDict()

    def _check_of(self, facts: ServerFacts) -> AccessCheck:
        return AccessCheck(self.access, facts, FunctionRule(facts, self.allowed_functions).is_configured)

    def visible(self, catalog: Catalog, facts: ServerFacts) -> Catalog:
        """The part of `catalog` that statements may read on the server that `facts` describe.

        Says in the log, once, which denials cover nothing there.

        Raises:
            DatabaseUnavailable: the server does not tell what views read, so the operator's rules can't be enforced.
        """
        if self.access and not facts.is_followable:
            raise DatabaseUnavailable(_NOT_FOLLOWABLE)
        check = self._check_of(facts)
        idle = frozenset(check.idle_denials())
        for rule in sorted(idle - self._idle_denials):
            _log.warning(
                "DENIED_OBJECTS: %s is nothing in the database; write names as they are stored",
                ".".join(rule),
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
        verdicts = self._verdicts  # if another thread learns new facts now, this verdict goes with the old ones
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
        refusal = refusal or next(chain(self._readings.refusals(found), self._access.refusals(found)), None)
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
        # A forbidden function is reported before a missing one, which a repair would be tried on.
        refused.sort(key=lambda refusal: isinstance(refusal, InvalidSql))
        if not refused and lengths.may_grow(found, len(statement.data)):
            return lengths.refusal(statement.node, len(statement.data))
        return refused[0] if refused else None

    def _field_refusals(self, found: Findings, text: str) -> Iterator[StatementRejected]:
        """Refusals of functions that are written like fields. The text is parsed again only if there may be one."""
        judged = {name: self._functions.judge_field(name) or self._types.judge_call((name,)) for name in found.fields}
        refusals = {name: refusal for name, refusal in judged.items() if refusal is not None}
        if refusals:
            doubtful = FieldCheck(self._facts).doubtful(parse(text)[0].node)
            yield from (refusals[name] for name in doubtful if name in refusals)


def _only_query(statements: list[Statement]) -> Statement:
    if not statements:
        raise InvalidSql("empty statement", detail_zh="语句为空", sqlstate="42601")
    operations = [operation_of(statement.kind, statement.node) for statement in statements]
    if len(statements) > 1:
        found = ", ".join(operations[:10])
        hint = Text(f"一次只能执行一条语句，收到：{found}。", f"Send one statement at a time; got: {found}.")
        raise ForbiddenStatement("multiple statements", hint=hint)
    if statements[0].kind != "SelectStmt":
        raise ForbiddenStatement(operations[0])
    return statements[0]


def _located(refusal: StatementRejected, statement: Statement) -> StatementRejected:
    """The refusal with its position in characters: the tree counts bytes."""
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
    """The text with `pg_catalog.` before the names of the calls."""
    data = text.encode("utf-8")
    for place in sorted({call.location for call in calls}, reverse=True):
        if not data[place:].lower().startswith((b"pg_catalog", b'"pg_catalog"')):
            data = data[:place] + b"pg_catalog." + data[place:]
    return data.decode("utf-8")


def _sorted(names: Iterable[Name]) -> tuple[str, ...]:
    return tuple(sorted({".".join(name) for name in names}))
