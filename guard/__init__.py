"""Prove from a statement's text, and from what the server has, that it is one harmless query.

`Guard` judges a statement in this order. Every step is an allow-list: what is not known to be
harmless is refused.

1.  `sqltree.parsing` makes PostgreSQL's own parse tree of any text, in bounded time. There must be
    one statement, and it must be a query.
2.  `walk` goes through the tree once and notes what the query reads, calls and names. Every part
    must be one that `grammar` lists; `scopes` tells CTEs from tables.
3.  `joins` refuses more relations than PostgreSQL can plan together. Numbers that the connected
    server, if it is older, would read as something else are refused as well.
4.  `objects` judges what is named: relations and types of the system, special values, sampling
    methods. `document_paths` tells it which XPaths end soon.
5.  `closure` judges what PostgreSQL runs or casts although nobody named it: what relations,
    columns, types and calls lead to.
6.  `qualifying` judges operators and calls whose name harmful code of the user's has as well.
7.  `rows` finds functions that are written like columns; `functions` judges these and all calls.
8.  `readings` judges names that a server with another encoding reads as others.
9.  `access` applies the operator's `rules`: which tables, columns and views are open. `columns`
    finds where a statement reads a column, for this step and for step 5.
10. `lengths` bounds how long the values get that the query builds, and how long that takes; its
    docstring lists its modules.
11. What uses a name of step 6 is written anew with `pg_catalog` before it, and amounts that step 10
    can't bound are limited by `amounts`, what is gathered from rows by `gathering`;
    `sqltree.writing` proves that the text is that tree. Any other statement is sent as it was
    written.

With the check of forbidden objects off, only steps 1 to 3, 8 and 9 are made. Row rules
(`guard.row_rules`) rewrite a proven statement before step 11.

`facts` is what the connected server has, `showing` leaves the part of the catalogue that may be
read, `refusal_texts` is what users are told.
"""

import logging
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from common.errors import DatabaseUnavailable, ForbiddenStatement, InvalidSql, StatementRejected
from common.text import Text
from common.values import Catalog
from guard import lengths
from guard.access import AccessCheck
from guard.amounts import limit_amounts
from guard.closure import Closure, ClosureRule, log_closed
from guard.collecting_aggregates import limit_collecting_aggregates
from guard.columns import Read
from guard.facts import BUILTIN, Key, Name, ServerFacts
from guard.functions import FunctionRule
from guard.grammar import NUMBERS_SINCE, operation_of, refuse_new_numbers
from guard.joins import JoinRule
from guard.lengths import NO_GROWTH, Growth
from guard.name_encoding import NameEncodingRule
from guard.objects import ObjectRule
from guard.qualifying import Qualifier
from guard.rows import FieldCheck
from guard.rules import EVERYTHING, AccessRuleError, AccessRules, check_function_rule, parse_rule
from guard.visible_catalog import visible
from guard.walk import Findings, walk
from sqltree.parsing import Node, ParsedStatement, parse
from sqltree.writing import text_of

__all__ = [
    "BUILTIN",
    "AccessRuleError",
    "AccessRules",
    "Guard",
    "Inspection",
    "ServerFacts",
    "check_function_rule",
    "parse_rule",
]

_log = logging.getLogger(__name__)

_REMEMBERED = (
    256  # verdicts kept, because a statement is checked, planned and run one after the other
)

_NOT_FOLLOWABLE = Text(
    "数据库隐藏了部分系统目录，无法执行 ALLOWED_OBJECTS 和 DENIED_OBJECTS。",
    "The server hides parts of its catalogue: ALLOWED_OBJECTS and DENIED_OBJECTS can't be "
    "enforced.",
)


@dataclass(frozen=True)
class Inspection:
    """Name the objects that a proven query uses, as written, each once, in alphabetical order.

    Attributes:
        statement: the text as it was written, without the semicolon at its end and what follows.
        sent: the text to run: the same, unless PostgreSQL could choose harmful code of the user's
            where built-in code is meant.
        tables: `name` or `schema.name`; CTEs are not tables.
        functions: names as called, qualified where the statement (or PostgreSQL's grammar)
            qualifies them.
        columns: references as written (`name`, `t.name`, `t.*`, `*`).
        growth: what PostgreSQL has to prove of what it builds.
    """

    statement: str
    sent: str
    tables: tuple[str, ...]
    functions: tuple[str, ...]
    columns: tuple[str, ...]
    growth: Growth = NO_GROWTH


class Guard:
    """Judges statements, and remembers its verdicts: actors with different rights must not share
    one.

    Args:
        allowed_functions: user-defined and extension functions that may be called: `schema.name`,
            `schema.*` or `name`.
        access: what may be read; always enforced.
        forbidden_check: when false, only the structure is judged: one statement, and nothing but a
            query. It stays on when `access` closes anything, because functions that run SQL, and
            system tables, would show that.
        hides_rows: whether rows are hidden from those who ask, so that code that may read them is
            refused as well; it is where `access` closes anything.
    """

    def __init__(
        self,
        *,
        allowed_functions: Collection[str] = (),
        access: AccessRules = EVERYTHING,
        forbidden_check: bool = True,
        hides_rows: bool = False,
    ) -> None:
        self.access = access
        self._hides_data = hides_rows or bool(access)
        self._said: set[str] = set()
        self._last_closure: tuple[ServerFacts, Closure] | None = None
        self.allowed_functions = frozenset(allowed_functions)
        self._forbidden_check = forbidden_check or bool(access)
        self._idle_denials: frozenset[Name] = frozenset()
        self._verdicts: OrderedDict[str, Inspection] = OrderedDict()
        self._use(BUILTIN)

    def learn(self, facts: ServerFacts) -> None:
        """Judge by `facts` from now on, without the verdicts of before if they are others."""
        if facts is not self._facts:
            self._use(facts)

    def _use(self, facts: ServerFacts) -> None:
        self._facts = facts
        self._functions = FunctionRule(facts, self.allowed_functions)
        self._objects = ObjectRule(facts)
        closure = self._closure_of(facts)
        self._closed = ClosureRule(facts, closure)
        self._qualifier = Qualifier(facts, self._functions, closure, hides_data=self._hides_data)
        self._joins = JoinRule(facts)
        self._readings = NameEncodingRule(facts)
        self._access = self._check_of(facts)
        self._verdicts = OrderedDict()

    def _check_of(self, facts: ServerFacts) -> AccessCheck:
        return AccessCheck(
            self.access, facts, FunctionRule(facts, self.allowed_functions).is_configured
        )

    def visible(self, catalog: Catalog, facts: ServerFacts) -> Catalog:
        """Return the part of `catalog` that statements may read on the server that `facts`
        describe.

        Says in the log, once, which denials cover nothing there.

        Raises:
            DatabaseUnavailable: the server does not tell what views read, so the operator's rules
                can't be enforced.
        """
        is_blind = self.access and not facts.is_followable
        if is_blind:
            raise DatabaseUnavailable(_NOT_FOLLOWABLE)

        check = self._check_of(facts)
        idle = frozenset(check.idle_denials())
        for rule in sorted(idle - self._idle_denials):
            _log.warning(
                "DENIED_OBJECTS: %s is nothing in the database; write names as they are stored",
                ".".join(rule),
            )

        self._idle_denials = idle
        if not self._forbidden_check:
            return visible(catalog, check)

        closure = self._closure_of(facts)
        log_closed(closure, self._said)
        return visible(catalog, check, ClosureRule(facts, closure).columns)

    def _closure_of(self, facts: ServerFacts) -> Closure:
        """Return what the facts lead to. Large catalogues take a while, so the last one is kept:
        they are shown, in a thread, before statements are judged by them.
        """
        known_facts, closure = self._last_closure or (None, None)
        if closure is None or known_facts is not facts:
            functions = FunctionRule(facts, self.allowed_functions)
            closure = Closure(facts, functions, hides_data=self._hides_data)
            self._last_closure = (facts, closure)

        return closure

    def may_run(self, key: Key) -> bool:
        """Tell whether reading the relation may run code that the guard refuses."""
        return self._closed.columns.refusal(Read(key)) is not None

    def qualify(self, select: Node, growth: Growth = NO_GROWTH) -> bool:
        """Change the tree of a proven query so that only built-in code is meant where harmful code
        of the user's has its name; whether anything was to change.

        Args:
            growth: see `Inspection`.

        Raises:
            ValidationFailed: it is too deep, or would grow too much.
        """
        if not self._forbidden_check:
            return False

        is_limited = False
        if growth.amounts:
            is_limited = limit_amounts(select, growth.amounts)
        if growth.gathered_copies:
            is_limited |= limit_collecting_aggregates(select, growth.gathered_copies)
        if self._qualifier.qualify(select):
            return True

        return is_limited

    def check(self, sql: str) -> None:
        """Return when `sql` is one harmless query.

        Raises:
            ForbiddenStatement, ForbiddenObject, InvalidSql, ValidationFailed: as `Database.inspect`
                says.
        """
        self.inspect(sql)

    def inspect(self, sql: str) -> Inspection:
        """Return what the query uses; raises what `check` raises."""
        # If another thread learns new facts now, this verdict goes with the old ones.
        verdicts = self._verdicts
        verdict = verdicts.get(sql)
        if verdict is None:
            verdict = self._judge(sql)
            verdicts[sql] = verdict
            while len(verdicts) > _REMEMBERED:
                verdicts.popitem(last=False)

        return verdict

    def remembered(self, sql: str) -> Inspection | None:
        """Return what the query uses, if it was proven lately by what is known now."""
        return self._verdicts.get(sql)

    def _judge(self, sql: str) -> Inspection:
        statement = _only_query(parse(sql))
        findings = walk(statement.kind, statement.node)
        self._joins.refuse_many(findings)
        if 0 < self._facts.version < NUMBERS_SINCE * 10_000:
            refuse_new_numbers(statement.text)

        findings.calls = self._functions.as_read(findings.calls, findings.syntax)
        refusal = None
        if self._forbidden_check:
            refusal = self._first_refusal(findings, statement)

        refusal = refusal or next(
            chain(self._readings.refusals(findings), self._access.refusals(findings)), None
        )
        if refusal is not None:
            raise _located(refusal, statement)

        growth = self._growth_of(findings, statement)
        sent = self._sent(statement, findings, growth)
        return Inspection(
            statement=statement.text,
            sent=sent,
            tables=_sorted_names(relation.parts for relation in findings.relations),
            functions=_sorted_names(call.parts for call in findings.calls),
            columns=_sorted_names(findings.columns),
            growth=growth,
        )

    def _sent(self, statement: ParsedStatement, findings: Findings, growth: Growth) -> str:
        """Return the text to send; it is parsed again only if something may have to change."""
        may_change = growth.is_proven_later or self._qualifier.concerns(findings)
        is_as_written = not self._forbidden_check or not may_change
        if is_as_written:
            return statement.text

        tree = parse(statement.text)[0].node
        is_changed = self.qualify(tree, growth)
        if is_changed:
            return text_of(tree)

        return statement.text

    def _growth_of(self, findings: Findings, statement: ParsedStatement) -> Growth:
        """Return what the query builds; refuses too much."""
        is_short = not self._forbidden_check or not lengths.may_grow(findings, statement.text)
        if is_short:
            return NO_GROWTH

        return lengths.growth_of(statement.node, statement.text, findings, self._facts.builtins)

    def _first_refusal(
        self, findings: Findings, statement: ParsedStatement
    ) -> StatementRejected | None:
        """Return the refusal of steps 4 to 7 that is reported."""
        rules = (
            self._objects.refusals(findings),
            self._closed.refusals(findings),
            self._qualifier.refusals(findings, self._closed.columns),
        )
        for refusal in chain.from_iterable(rules):
            return refusal

        refused: list[StatementRejected] = list(self._field_refusals(findings, statement.text))
        for call in findings.calls:
            call_refusal = self._functions.judge(call)
            if call_refusal is not None:
                refused.append(call_refusal)

        # A forbidden function is reported before a missing one, which a repair would be tried on.
        refused.sort(key=lambda refusal: isinstance(refusal, InvalidSql))
        if refused:
            return refused[0]

        return None

    def _field_refusals(self, findings: Findings, text: str) -> Iterator[StatementRejected]:
        """Yield refusals of functions that are written like fields.

        The text is parsed again only if there may be one.
        """
        refusals: dict[str, StatementRejected] = {}
        for name in findings.fields:
            called = self._functions.judge_field(name)
            refusal = called or self._closed.judge_call((name,))
            if refusal is not None:
                refusals[name] = refusal

        if not refusals:
            return

        tree = parse(text)[0].node
        for name in FieldCheck(self._facts).doubtful(tree):
            if name in refusals:
                yield refusals[name]


def _only_query(statements: list[ParsedStatement]) -> ParsedStatement:
    if not statements:
        raise InvalidSql("empty statement", detail_zh="语句为空", sqlstate="42601")

    operations = [operation_of(statement.kind, statement.node) for statement in statements]
    if len(statements) > 1:
        named_operations = ", ".join(operations[:10])
        hint = Text(
            f"一次只能执行一条语句，收到：{named_operations}。",
            f"Send one statement at a time; got: {named_operations}.",
        )
        raise ForbiddenStatement("multiple statements", hint=hint)

    if statements[0].kind != "SelectStmt":
        raise ForbiddenStatement(operations[0])

    return statements[0]


def _located(refusal: StatementRejected, statement: ParsedStatement) -> StatementRejected:
    """Return the refusal with its position in characters: the tree counts bytes."""
    if isinstance(refusal, InvalidSql) and refusal.position:
        before = statement.text.encode("utf-8")[: refusal.position - 1]
        refusal.position = len(before.decode("utf-8", "replace")) + 1

    return refusal


def _sorted_names(names: Iterable[Name]) -> tuple[str, ...]:
    dotted = set(map(".".join, names))
    return tuple(sorted(dotted))
