"""Judges by what PostgreSQL may run although the statement doesn't name it.

Sorting, grouping and joining call functions of operator classes, NOT turns an operator into its
negator, a value that meets another type is cast, a domain checks it, an index and a partition key
are compared while the statement is planned, a view or a policy calls what its owner wrote. The
server's catalogue tells all of that (`facts.CodeGraph`). Whatever leads to a function of the user's
that is VOLATILE or SECURITY DEFINER, and that the operator doesn't allow, is refused: relations,
columns, types and operators. Where some objects or rows are closed, so is what leads to a STABLE
one, which may read them; views are then judged by `access`.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from common.errors import ForbiddenObject, StatementRejected
from guard import refusal_texts as texts
from guard.columns import Block, ColumnCheck, Read
from guard.facts import CodeEdge, CodeNode, Key, Name, ServerFacts, qualifier_of
from guard.functions import Call, FunctionRule, probed_types
from guard.refusal_texts import refusal_of_object
from guard.walk import Findings, last_names, walk
from sqltree.parsing import parse

_log = logging.getLogger(__name__)

_SYSTEM_COLUMNS = {
    **dict.fromkeys(("xmin", "xmax"), "xid"),
    **dict.fromkeys(("cmin", "cmax"), "cid"),
    "ctid": "tid",
    "tableoid": "oid",
}
_SYSTEM = "pg_catalog"
_CONSTANTS = ("int4", "int8", "numeric", "bool", "bit", "text")  # the types of constants
_EXAMPLES = 5  # of what a function closes, in the log


class Closure:
    """Everything that leads to code that may do harm, as far as the operator doesn't allow it.

    Args:
        hides_data: whether objects or rows are closed, so that functions that read count as well.

    Attributes:
        relations: those that can't be read, each with the function they lead to.
        columns: the same for columns of others, by relation.
        types: the same for types that may not be named.
        targets: the same for types that values may not be cast to.
        row_targets: the same for types that `ROW(…)` may not be cast to.
        casts: casts between built-in types, by the names of the types, each with the functions and
            symbols of which a value may be of the first one.
        operators: the same for operators, by their OIDs.
        makers: functions and symbols of which a value may be of such a type, each with the types.
    """

    def __init__(self, facts: ServerFacts, functions: FunctionRule, *, hides_data: bool) -> None:
        self.relations: dict[Key, str] = {}
        self.columns: defaultdict[Key, dict[str, str]] = defaultdict(dict)
        self.types: dict[Key, str] = {}
        self.targets: dict[Key, str] = {}
        self.row_targets: dict[Key, str] = {}
        self.casts: dict[tuple[str, str], frozenset[str]] = {}
        self.operators: dict[int, str] = {}
        self.makers: defaultdict[str, set[Key]] = defaultdict(set)
        self._graph = facts.code
        self._functions = functions
        kinds = "vbd"
        if hides_data:
            kinds = "vbds"

        reached: dict[CodeNode, str] = {}
        for kind in kinds:
            self._follow(kind, reached)

        for node, function in reached.items():
            self._enter(node, function)

    def _follow(self, kind: str, reached: dict[CodeNode, str]) -> None:
        """Add what functions of the kind lead to."""
        pending: list[tuple[CodeNode, str]] = []
        for node, own_kind in self._graph.functions.items():
            name = self._graph.names.get(node, ())
            if own_kind != kind:
                continue
            if self._counts(kind, name):
                pending.append((node, ".".join(name)))

        while pending:
            node, function = pending.pop()
            for edge in self._graph.edges.get(node, ()):
                if _is_barred(kind, node, edge):
                    continue
                if self._is_vouched(edge, reached):
                    continue

                reached[edge.runner] = function
                pending.append((edge.runner, function))

    def _counts(self, kind: str, name: Name) -> bool:
        if len(name) != 2:  # noqa: PLR2004 - schema and name
            return True
        if kind == "b":
            return self._functions.judge(Call(name)) is not None

        return not self._functions.is_configured((name[0], name[1]))

    def _is_vouched(self, edge: CodeEdge, reached: Mapping[CodeNode, str]) -> bool:
        """Tell whether what runs the code is noted already, or is a function that the operator
        allows: an aggregate is allowed as a whole.
        """
        if edge.runner in reached:
            return True

        name = self._graph.names.get(edge.runner, ())
        is_function = edge.runner[0] == "f"
        if not is_function or len(name) != 2:  # noqa: PLR2004 - schema and name
            return False

        return self._functions.is_configured((name[0], name[1]))

    def _enter(self, node: CodeNode, function: str) -> None:
        """Enter a node of the code graph, which runs a function, among the things of its kind."""
        kind, oid, _ = node
        if kind == "o":
            self.operators[oid] = function

        name = self._graph.names.get(node, ("", ""))
        if kind == "a":
            self.columns[name[0], name[1]][name[2]] = function
            return

        if kind == "c":
            self.casts[name[1], name[2]] = self._graph.makers.get(node, frozenset())
            return

        places = {
            "r": self.relations,
            "t": self.types,
            "g": self.targets,
            "h": self.row_targets,
        }
        if kind in places:
            places[kind][name[0], name[1]] = function
        if kind == "t":
            for maker in self._graph.makers.get(node, ()):
                self.makers[maker].add((name[0], name[1]))

    def report(self) -> dict[str, list[str]]:
        """Return some of the relations and columns that each function closes, by its name."""
        closed: defaultdict[str, list[str]] = defaultdict(list)
        for key, function in sorted(self.relations.items()):
            closed[function].append(".".join(key))

        for key, columns in sorted(self.columns.items()):
            for column, function in sorted(columns.items()):
                closed[function].append(".".join((*key, column)))

        examples = {}
        for function, names in closed.items():
            examples[function] = names[:_EXAMPLES]

        return examples


def _is_barred(kind: str, node: CodeNode, edge: CodeEdge) -> bool:
    """Tell whether functions of the kind don't count where `node` is run on that way.

    The owner of a table says by a policy who sees which rows, with whatever rights that takes.
    STABLE functions that views name are judged by `access`.
    """
    if edge.way == "policy":
        return kind in ("d", "s")

    is_of_view = edge.way == "view"
    is_stable = kind == "s"
    is_function = node[0] == "f"
    return is_of_view and is_stable and is_function


class ClosureRule:
    """Judges statements by a closure."""

    def __init__(self, facts: ServerFacts, closure: Closure) -> None:
        self.columns = RunningColumns(facts, closure, self)
        self._catalog_columns = CatalogColumns(facts)
        self._facts = facts
        self._closure = closure
        self._types = _last_parts(closure.types)
        self._catalog_types = _last_parts(facts.catalog_types)
        self._targets = _last_parts(closure.targets)
        self._row_targets = _last_parts(closure.row_targets)
        self._system_columns = set()
        for column, type_name in _SYSTEM_COLUMNS.items():
            if (_SYSTEM, type_name) in closure.types:
                self._system_columns.add(column)

    def refusals(self, findings: Findings) -> Iterator[ForbiddenObject]:
        has_types = self._types or self._targets or self._catalog_types
        if has_types:
            yield from self._type_refusals(findings)
        if self._closure.casts:
            yield from self._builtin_cast_refusals(findings)
        if self._closure.makers:
            yield from self._maker_refusals(findings)
            yield from self._syntax_refusals(findings)

        blocks: list[Block] = []
        if self.columns.is_needed:
            blocks = self.columns.blocks(findings)
            yield from self.columns.refusals(findings, blocks)

        if self._facts.catalog_columns:
            blocks = blocks or self.columns.blocks(findings)
            shown = replace(findings, columns=findings.used_columns)
            yield from self._catalog_columns.column_refusals(shown, blocks)

    def _type_refusals(self, findings: Findings) -> Iterator[ForbiddenObject]:
        """Refuse types that are named, cast to or called like a function."""
        named = list(findings.types)
        for call in findings.calls:
            words = probed_types(call)
            named += [(word,) for word in words]

        yield from filter(None, map(self._named, named))
        for name, source in findings.casts:
            if self._is_risky_cast(name, source):
                yield refusal_of_object(name[-1], texts.RISKY_CAST)

        for call in findings.calls:
            if call.name in self._facts.builtins:
                continue

            refusal = self.judge_call(call.parts)
            if refusal is not None:
                yield refusal

    def _builtin_cast_refusals(self, findings: Findings) -> Iterator[ForbiddenObject]:
        """Refuse casts between built-in types where a value of the first may be at hand."""
        used = _used_names(findings)
        at_hand = types_at_hand(findings, self._facts)
        for name in _builtin_types_at_hand(findings):
            at_hand.add((_SYSTEM, name))

        targets = _cast_targets(findings)
        for (source, target), makers in self._closure.casts.items():
            if target not in targets:
                continue

            is_made = not makers.isdisjoint(used)
            is_at_hand = is_made or (_SYSTEM, source) in at_hand
            if is_at_hand:
                yield refusal_of_object(target, texts.RISKY_CAST)

    def _named(self, name: Name) -> ForbiddenObject | None:
        """Return the refusal of a type that is named."""
        if not name:
            return None

        last = name[-1]
        if name[:-1] == (_SYSTEM,):
            is_risky = (_SYSTEM, last) in self._closure.types
        elif last in self._catalog_types:
            return refusal_of_object(last, texts.HOLDS_CATALOG_TYPE)
        else:
            is_risky = last in self._types

        if is_risky:
            return refusal_of_object(last, texts.RISKY_TYPE)

        return None

    def _is_risky_cast(self, name: Name, source: str) -> bool:
        """Tell whether the cast of a constant (`text`), a row or another value may run code."""
        if source == "text":
            return False

        # A row is cast field by field.
        targets = self._targets
        if source == "row":
            targets = self._row_targets

        last = name[-1:]
        return not targets.isdisjoint(last)

    def judge_call(self, name: Name) -> ForbiddenObject | None:
        """Return the refusal of `type(value)` or `value.type`, which is a cast when there is no
        such function.
        """
        if name[-1] not in self._facts.types:
            return None

        refusal = self._named(name)
        if refusal is not None:
            return refusal
        if self._is_risky_cast(name, "value"):
            return refusal_of_object(name[-1], texts.RISKY_CAST)

        return None

    def _maker_refusals(self, findings: Findings) -> Iterator[ForbiddenObject]:
        """Refuse calls and operators that give values of a type that may not be named."""
        for call in findings.calls:
            dotted = ".".join(call.parts)
            is_builtin = call.name in self._facts.builtins
            if self._may_make(call.name, is_builtin=is_builtin):
                yield refusal_of_object(dotted, texts.RISKY_RESULT)

        for operator in filter(None, findings.operators):
            symbol = operator[-1]
            is_builtin = symbol in self._facts.builtin_operators
            if self._may_make(symbol, is_builtin=is_builtin):
                yield refusal_of_object(symbol, texts.RISKY_RESULT)

    def _syntax_refusals(self, findings: Findings) -> Iterator[ForbiddenObject]:
        """Refuse syntax and system columns of a type that may not be named."""
        for word in findings.made_types:
            if (_SYSTEM, word) in self._closure.types:
                yield refusal_of_object(word, texts.RISKY_TYPE)

        for column in findings.columns:
            name = column[-1]
            if name in self._system_columns:
                yield refusal_of_object(name, texts.RISKY_VALUE)

    def _may_make(self, maker: str, *, is_builtin: bool) -> bool:
        """Tell whether it may give such a type; what is built in gives built-in types only."""
        made_types = self._closure.makers.get(maker, set())
        if is_builtin:
            made_types = {(schema, name) for schema, name in made_types if schema == _SYSTEM}

        return bool(made_types)


def types_at_hand(findings: Findings, facts: ServerFacts) -> set[Key]:
    """Return the types that a statement names, and those of the relations that it reads."""
    types: set[Key] = set()
    for relation in findings.relations:
        key = facts.key(relation.schema, relation.name)
        for column in facts.attributes.get(key, ()):
            types.add(column.type)
            if column.row:
                types.add(column.row)

    for name in findings.types:
        last = name[-1]
        schema = qualifier_of(name)
        schemas: Sequence[str] = (_SYSTEM, *facts.search_path)
        if schema is not None:
            schemas = (schema,)

        for each in schemas:
            types.add((each, last))

    # Arrays of a type hold it, too.
    elements = {(schema, name.removeprefix("_")) for schema, name in types}
    return types | elements


def _builtin_types_at_hand(findings: Findings) -> set[str]:
    """Return the types of constants, of system columns and of what syntax makes."""
    types = {*_CONSTANTS, *findings.made_types}
    for column in findings.columns:
        name = column[-1]
        types.add(_SYSTEM_COLUMNS.get(name, ""))

    return types


def _used_names(findings: Findings) -> set[str]:
    """Return the names of the functions and operators that are used."""
    return findings.called | findings.symbols


def _cast_targets(findings: Findings) -> set[str]:
    """Return the names of types that values are cast to, in either way of writing it."""
    casts = [name for name, source in findings.casts if source != "text"]
    written = last_names(casts)
    called_like_functions = findings.called
    return called_like_functions | written


class RunningColumns(ColumnCheck):
    """Relations and columns of which reading runs something.

    Attributes:
        rows: relations whose rows as values run something.
    """

    def __init__(self, facts: ServerFacts, closure: Closure, rule: "ClosureRule") -> None:
        super().__init__(facts)
        self._closure = closure
        self._rule = rule
        self._views: dict[Key, bool] = {}
        schemas = {schema for schema, _ in closure.types}
        self._has_system_types = _SYSTEM in schemas
        self.rows = facts.relations.intersection(closure.types)

    @property
    def is_needed(self) -> bool:
        """Tell whether it refuses anything."""
        reasons = (
            self._has_system_types,
            self.rows,
            self._closure.relations,
            self._closure.columns,
        )
        return any(reasons)

    def refusals(self, findings: Findings, blocks: list[Block]) -> Iterator[ForbiddenObject]:
        """Return every refusal of what the statement reads."""
        for block in blocks:
            reads = [read for _, read in block.tables]
            yield from filter(None, map(self.refusal, reads))

        yield from self.column_refusals(findings, blocks)

    def refusal(self, read: Read) -> ForbiddenObject | None:
        """Return why nothing of the relation may be read, or None."""
        key = read.key
        is_closed = key in self._closure.relations or self._is_closed_view(key)
        if is_closed:
            return refusal_of_object(".".join(key), texts.RISKY_RELATION)

        return None

    def _is_closed_view(self, key: Key) -> bool:
        """Tell whether a view's query uses built-in types that may not be named: the server
        notes no dependency on these.
        """
        query = None
        if self._has_system_types:
            query = self.facts.view_definitions.get(key)
        if query is None:
            return False
        if key not in self._views:
            self._views[key] = False  # a view may lead back to itself
            self._views[key] = self._is_risky(query)

        return self._views[key]

    def _is_risky(self, query: str) -> bool:
        try:
            (statement,) = parse(query)
            findings = walk(statement.kind, statement.node)
            return next(self._rule.refusals(findings), None) is not None
        except (StatementRejected, ValueError, RecursionError):
            return True

    def has_secrets(self, read: Read) -> bool:
        if read.key in self._closure.columns:
            return True

        return read.key in self.rows

    def may_read_column(self, read: Read, column: str) -> bool:
        return column not in self._closure.columns.get(read.key, ())

    def shows_star(self, block: Block, read: Read) -> bool:
        if not block.has_star:
            return False

        return read.key in self._closure.columns

    def row_refusal(self, read: Read, *, is_expanded: bool) -> ForbiddenObject | None:
        has_closed_columns = read.key in self._closure.columns
        if is_expanded and not has_closed_columns:
            return None

        return self.closed_row(read)

    def closed_column(self, read: Read, column: str) -> ForbiddenObject:
        return refusal_of_object(".".join((*read.key, column)), texts.RISKY_COLUMN)

    def closed_row(self, read: Read) -> ForbiddenObject:
        return refusal_of_object(".".join(read.key), texts.RISKY_ROW)


class CatalogColumns(ColumnCheck):
    """Columns whose values are names of the server's own objects: a number that meets one is read
    as a system object. They may only be shown.
    """

    def has_secrets(self, read: Read) -> bool:
        return read.key in self.facts.catalog_columns

    def may_read_column(self, read: Read, column: str) -> bool:
        return column not in self.facts.catalog_columns.get(read.key, ())

    def shows_star(self, block: Block, read: Read) -> bool:  # noqa: ARG002 - see `ColumnCheck`
        if not block.has_star:
            return False

        return not block.is_outermost

    def closed_column(self, read: Read, column: str) -> ForbiddenObject:  # noqa: ARG002
        return refusal_of_object(column, texts.MIXED_VALUE)

    def closed_row(self, read: Read) -> ForbiddenObject:
        columns = sorted(self.facts.catalog_columns[read.key])
        return refusal_of_object(columns[0], texts.MIXED_VALUE)


def log_closed(closure: Closure, logged: set[str]) -> None:
    """Say in the log what can't be read, and why; each function once.

    Args:
        logged: the functions that were named before.
    """
    for function, names in sorted(closure.report().items()):
        if function in logged:
            continue

        logged.add(function)
        _log.warning(
            "not shown and refused, because it may run %s, which may have side effects or read"
            " what is closed (mark it IMMUTABLE or list it in ALLOWED_FUNCTIONS): %s",
            function,
            ", ".join(names),
        )


def _last_parts(keys: Iterable[Key]) -> set[str]:
    names = set()
    for _, name in keys:
        names.add(name)

    return names
