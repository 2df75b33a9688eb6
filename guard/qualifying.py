"""Writes statements so that PostgreSQL can't choose a function or operator of the user's where a
built-in one is meant.

PostgreSQL chooses among all functions and operators of a name by the types at hand, which the text
does not tell. A name is contested where one of the user's that may do harm shares it with a
built-in. Statements that use a contested name are written anew with `pg_catalog` before it. Some
syntax hides an operator that can't be qualified there: `BETWEEN`, `IN`, `LIKE`, `NULLIF`, `IS
DISTINCT FROM` and `CASE x WHEN` are written out. Joins by USING and NATURAL can't be, so the types
of their columns must leave no choice.

Where a harmless operator or function of the user's shares the contested name, for a type that the
statement reads or names, nobody can tell which is meant: that is refused.
"""

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from common.errors import ForbiddenObject, ValidationFailed
from guard import refusal_texts as texts
from guard.closure import Closure, types_at_hand
from guard.columns import Block, ColumnCheck
from guard.facts import Key, Name, ServerFacts, UserOperator, qualifier_of
from guard.functions import FunctionRule
from guard.grammar import SYNTAX_SINCE
from guard.refusal_texts import refusal_of_object
from guard.walk import Findings, strings
from sqltree.parsing import TOO_DEEP, TOO_MANY_PARTS, Node
from sqltree.writing import NOT_WRITABLE

_SYSTEM = "pg_catalog"
_MOST_ADDED = 100_000  # nodes that writing out may add to a statement
_PLAIN_KINDS = frozenset(
    ("AEXPR_OP", "AEXPR_OP_ANY", "AEXPR_OP_ALL", "AEXPR_LIKE", "AEXPR_ILIKE", "AEXPR_SIMILAR")
)
_SPELLED_KINDS = frozenset(("AEXPR_OP", "AEXPR_OP_ANY", "AEXPR_OP_ALL"))


@dataclass(frozen=True)
class _Contested:
    """Lists the meanings of a name that harmful code of the user's has.

    Attributes:
        is_builtin: whether built-in code has it, too.
        harmless: the types for which harmless code of the user's has it.
        harmful: the types for which harmful code has it.
    """

    is_builtin: bool
    harmless: frozenset[Key] = frozenset()
    harmful: frozenset[Key] = frozenset()

    def is_ambiguous(self, at_hand: set[Key]) -> bool:
        """Tell whether harmless code of the user's may be meant for one of the types at hand."""
        return not at_hand.isdisjoint(self.harmless)


class Qualifier:
    """Judges and rewrites statements.

    Args:
        hides_data: see `Closure`.
    """

    def __init__(
        self, facts: ServerFacts, functions: FunctionRule, closure: Closure, *, hides_data: bool
    ) -> None:
        self._facts = facts
        self._functions = functions
        self._closure = closure
        self._symbols = self._contested_symbols()
        self._names = self._contested_names(hides_data=hides_data)
        self._system_symbols = {
            symbol for symbol in facts.builtin_operators if symbol in self._risky_system()
        }

    def _risky_system(self) -> set[str]:
        """Return the symbols of built-in operators that lead to harmful code."""
        symbols = set()
        for oid in self._closure.operators:
            name = self._facts.code.names.get(("o", oid, 0), ())
            if name[:1] == (_SYSTEM,):
                symbols.add(name[-1])

        return symbols

    def _contested_symbols(self) -> Mapping[str, _Contested]:
        contested = {}
        for symbol, operators in self._facts.operators.items():
            harmful: list[UserOperator] = []
            harmless: list[UserOperator] = []
            for operator in operators:
                if operator.schema not in self._facts.search_path:
                    continue

                is_harmful = operator.oid in self._closure.operators
                (harmful if is_harmful else harmless).append(operator)

            if harmful:
                own_types = set()
                for key in _operands(harmless):
                    if not _is_system(key):
                        own_types.add(key)

                is_builtin = symbol in self._facts.builtin_operators
                contested[symbol] = _Contested(is_builtin, frozenset(own_types), _operands(harmful))

        return contested

    def _contested_names(self, *, hides_data: bool) -> Mapping[str, _Contested]:
        facts = self._facts
        harmful = facts.risky_routines
        if hides_data:
            harmful = facts.reading_routines

        contested = {}
        for schema, name in harmful:
            is_shared = schema in facts.search_path and name in facts.builtins
            if not is_shared:
                continue
            if not self._functions.is_configured((schema, name)):
                own_arguments = facts.own_arguments.get(name, frozenset())
                contested[name] = _Contested(is_builtin=True, harmless=own_arguments)

        return contested

    # --------------------------------------------------------------------------
    # judging

    def concerns(self, findings: Findings) -> bool:
        """Tell whether the statement uses a contested name."""
        contested_symbols = self._symbols.keys() & findings.symbols
        contested_calls = self._names.keys() & findings.called
        return bool(contested_symbols or contested_calls)

    def refusals(self, findings: Findings, columns: ColumnCheck) -> Iterator[ForbiddenObject]:
        for name in findings.operators:
            yield from self._refused_operator(name)

        if not self.concerns(findings):
            return

        at_hand = types_at_hand(findings, self._facts)
        symbols = []
        for name in findings.operators:
            is_unqualified = len(name) == 1
            if is_unqualified:
                symbols.append(name[0])

        for symbol in symbols:
            yield from self._symbol_refusals(symbol, at_hand)

        yield from self._call_refusals(findings, at_hand)
        if "=" not in self._symbols:
            return
        if "=" in symbols:
            yield from self._merging_refusals(columns.blocks(findings))

    def _call_refusals(self, findings: Findings, at_hand: set[Key]) -> Iterator[ForbiddenObject]:
        for call in findings.calls:
            if call.schema is not None:
                continue

            contested = self._names.get(call.name)
            if contested is None:
                continue
            if contested.is_ambiguous(at_hand):
                yield refusal_of_object(call.name, texts.RISKY_CALL_HERE)

    def _symbol_refusals(self, symbol: str, at_hand: set[Key]) -> Iterator[ForbiddenObject]:
        contested = self._symbols.get(symbol)
        if contested is None:
            return
        if not contested.is_builtin:
            yield refusal_of_object(symbol, texts.RISKY_OPERATOR)
        elif contested.is_ambiguous(at_hand):
            yield refusal_of_object(symbol, texts.RISKY_OPERATOR_HERE)

    def _refused_operator(self, name: Name) -> Iterator[ForbiddenObject]:
        """Refuse a harmful operator that is the system's or is written with its schema."""
        if not name:
            return

        symbol = name[-1]
        is_systems = symbol in self._system_symbols and name[:-1] in ((), (_SYSTEM,))
        if is_systems:
            yield refusal_of_object(".".join(name), texts.RISKY_OPERATOR)

        schema = qualifier_of(name)
        if schema is None:
            return

        operators = self._facts.operators.get(symbol, ())
        oids = {operator.oid for operator in operators if operator.schema == schema}
        is_harmful = not oids.isdisjoint(self._closure.operators)
        if is_harmful:
            yield refusal_of_object(".".join(name), texts.RISKY_OPERATOR)

    def _merging_refusals(self, blocks: list[Block]) -> Iterator[ForbiddenObject]:
        """Refuse joins by USING and NATURAL that may compare by an operator of the user's."""
        for block in blocks:
            merges_columns = block.hides_names or bool(block.merged)
            if not merges_columns:
                continue

            is_sure = self._merges_surely(block)
            if not is_sure:
                yield refusal_of_object("=", texts.RISKY_OPERATOR_HERE)

    def _merges_surely(self, block: Block) -> bool:
        """Tell whether the block's merged columns are surely compared by built-in operators."""
        if block.has_others:
            return False

        types: dict[str, set[Key]] = {}
        for _, read in block.tables:
            columns = self._facts.attributes.get(read.key, ())
            if not columns:
                return False

            for column in columns:
                types.setdefault(column.name, set()).add(column.type)

        names: Collection[str] = block.merged
        if block.hides_names:
            names = types.keys()

        return all(self._is_settled(types.get(name, set())) for name in names)

    def _is_settled(self, types: set[Key]) -> bool:
        """Tell whether two values of the types are surely compared by a built-in operator."""
        if len(types) != 1:
            return False

        (key,) = types
        is_compared = _is_system(key) and key[1] in self._facts.equal_types
        if is_compared:
            return True

        return key not in self._symbols["="].harmful

    # --------------------------------------------------------------------------
    # writing

    def qualify(self, select: Node) -> bool:
        """Change the tree of a query where it uses contested names; return whether it did.

        Raises:
            ValidationFailed: it is too deep, or would grow too much.
        """
        is_uncontested = not self._symbols and not self._names
        if is_uncontested:
            return False

        symbols = set()
        for symbol, each in self._symbols.items():
            if each.is_builtin:
                symbols.add(symbol)

        rewriting = _Rewriting(symbols, set(self._names), self._new_words())
        try:
            rewriting.visit(select)
        except RecursionError as error:
            raise ValidationFailed(TOO_DEEP) from error

        return rewriting.changed

    def _new_words(self) -> set[str]:
        """Return the words that our grammar reads as syntax and the server as plain calls."""
        version = self._facts.version // 10_000
        if not version:
            return set()

        words = set()
        for word, since in SYNTAX_SINCE.items():
            if version < since:
                words.add(word)

        return words


def _operands(operators: list[UserOperator]) -> frozenset[Key]:
    operands: set[Key] = set()
    for each in operators:
        operands.update(each.operands)

    return frozenset(operands)


def _is_system(key: Key) -> bool:
    return key[0] == _SYSTEM


class _Rewriting:
    """Qualifies names in one tree, and notes whether that changed it.

    Args:
        symbols: those to qualify.
        names: those of functions to qualify.
        new_words: those that are a syntax in our grammar and a plain call to the server.
    """

    def __init__(self, symbols: set[str], names: set[str], new_words: set[str]) -> None:
        self.changed = False
        self._symbols = symbols
        self._names = names
        self._new_words = new_words
        self._added = 0

    def visit(self, value: Any) -> None:
        """Rewrite everything inside, the innermost first."""
        if isinstance(value, list):
            for each in value:
                self.visit(each)

            return

        if not isinstance(value, dict):
            return

        children = list(value.values())
        for child in children:
            self.visit(child)

        self._rewrite(value)
        if "useOp" in value:
            value["useOp"] = self._qualified_name(value["useOp"])

    def _rewrite(self, holder: Node) -> None:
        """Rewrite the nodes that `holder` holds; a rewriter changes its node or returns another."""
        for kind in list(holder):
            rewriter = _REWRITERS.get(kind)
            if rewriter is None:
                continue
            if not isinstance(holder[kind], dict):
                continue

            replacement = rewriter(self, holder[kind])
            if replacement is not None:
                self.changed = True
                holder.pop(kind)
                holder.update(replacement)

    def _is_contested(self, *symbols: str) -> bool:
        return not self._symbols.isdisjoint(symbols)

    def _qualified_name(self, name: list[Node]) -> list[Node]:
        if len(name) != 1:
            return name
        if not self._is_contested(*strings(name)):
            return name

        self.changed = True
        return [_string(_SYSTEM), *name]

    def call(self, node: Node) -> None:
        """Qualify a function's name."""
        name = strings(node["funcname"])
        if name[-1] not in self._names:
            return

        # `unnest(a, b)` is a syntax of its own, for built-in calls; qualified, it is none.
        has_several = len(node.get("args", ())) > 1
        is_syntax = name == ("unnest",) and has_several
        if is_syntax:
            return

        is_unqualified = len(name) == 1
        if is_unqualified:
            node["funcname"] = [_string(_SYSTEM), *node["funcname"]]

        # Our grammar qualifies what has a syntax of its own; to an older server it is a plain call.
        is_changed = is_unqualified or name[-1] in self._new_words
        if is_changed:
            self.changed = True

    def sublink(self, node: Node) -> None:
        """Qualify the operator of `x IN (SELECT …)` and its relatives."""
        written = node.get("operName")
        if written is not None:
            node["operName"] = self._qualified_name(written)
            return

        compares = "testexpr" in node
        if compares and self._is_contested("="):
            equal = [_string("=")]
            node["operName"] = self._qualified_name(equal)

    def expression(self, node: Node) -> Node | None:
        """Return what stands in an operator's place; None for itself."""
        kind = node["kind"]
        if "BETWEEN" in kind:
            return self._expand_between(node)
        if kind in _PLAIN_KINDS:
            self._qualify_plain(node)
            return None

        if not self._is_contested(*strings(node["name"])):
            return None
        if kind == "AEXPR_IN":
            return self._one_of(node)

        left, right = node["lexpr"], node["rexpr"]
        if kind == "AEXPR_NULLIF":
            return self._unless_equal(left, right)
        if kind in ("AEXPR_DISTINCT", "AEXPR_NOT_DISTINCT"):
            return self._distinct(left, right, is_equal="NOT" in kind)

        raise ValidationFailed(NOT_WRITABLE)

    def _unless_equal(self, value: Node, other: Node) -> Node:
        """Return `NULLIF(value, other)` as a CASE."""
        is_same = self._operation("=", value, other)
        when = {"expr": is_same, "result": _null()}
        result = self._copy(value)
        return _case([when], result)

    def _qualify_plain(self, node: Node) -> None:
        """Qualify an operator that is written as its symbol or a word such as LIKE."""
        name = self._qualified_name(node["name"])
        is_qualified = name is not node["name"]
        is_word = is_qualified and node["kind"] not in _SPELLED_KINDS
        if is_word:
            node["kind"] = "AEXPR_OP"

        node["name"] = name

    def _expand_between(self, node: Node) -> Node | None:
        is_not = "NOT" in node["kind"]
        symbols = (">=", "<=")
        if is_not:
            symbols = ("<", ">")
        if not self._is_contested(*symbols):
            return None

        value = node["lexpr"]
        low, high = node["rexpr"]["List"]["items"]
        test = self._range_test(value, low, high, is_not=is_not)
        if not node["kind"].endswith("_SYM"):
            return test

        swapped = [self._copy(part) for part in (value, high, low)]
        other = self._range_test(*swapped, is_not=is_not)
        operator = "OR_EXPR"
        if is_not:
            operator = "AND_EXPR"

        return _chain(operator, [test, other])

    def _range_test(self, value: Node, low: Node, high: Node, *, is_not: bool) -> Node:
        first, second, chain = ">=", "<=", "AND_EXPR"
        if is_not:
            first, second, chain = "<", ">", "OR_EXPR"

        again = self._copy(value)
        above = self._operation(first, value, low)
        below = self._operation(second, again, high)
        return _chain(chain, [above, below])

    def _one_of(self, node: Node) -> Node:
        (symbol,) = strings(node["name"])
        items = node["rexpr"]["List"]["items"]
        parts = []
        for item in items:
            value = self._copy(node["lexpr"])
            compared = self._operation(symbol, value, item)
            parts.append(compared)

        if len(parts) == 1:
            return parts[0]

        operator = "AND_EXPR"
        if symbol == "=":
            operator = "OR_EXPR"

        return _chain(operator, parts)

    def _distinct(self, one: Node, other: Node, *, is_equal: bool) -> Node | None:
        """Compare two values, NULL being one of them; rows are compared field by field."""
        has_null = _is_null(one) or _is_null(other)
        if has_null:
            return None  # PostgreSQL makes IS NULL of it

        left = one.get("RowExpr", {}).get("args", ())
        right = other.get("RowExpr", {}).get("args", ())
        is_one_value = not left or len(left) != len(right)
        if is_one_value:
            return self._distinct_value(one, other, is_equal=is_equal)

        parts = []
        for left_field, right_field in zip(left, right, strict=True):
            parts.append(self._distinct_value(left_field, right_field, is_equal=is_equal))

        if len(parts) == 1:
            return parts[0]

        operator = "OR_EXPR"
        if is_equal:
            operator = "AND_EXPR"

        return _chain(operator, parts)

    def _distinct_value(self, one: Node, other: Node, *, is_equal: bool) -> Node:
        compared = self._operation("=", one, other)
        count = _call("num_nonnulls", [self._copy(one), self._copy(other)])
        both = self._operation("=", count, _number(2))
        same_null = self._operation("=", self._copy(count), _number(0))
        if not is_equal:
            compared = _chain("NOT_EXPR", [compared])
            same_null = _chain("NOT_EXPR", [same_null])

        return _case([{"expr": both, "result": compared}], same_null)

    def case(self, node: Node) -> None:
        """Write `CASE x WHEN y` out as `CASE WHEN x = y`."""
        if "arg" not in node:
            return
        if not self._is_contested("="):
            return

        value = node.pop("arg")
        for item in node["args"]:
            when = item["CaseWhen"]
            when["expr"] = self._operation("=", self._copy(value), when["expr"])

        self.changed = True

    def chain(self, node: Node) -> None:
        """Put a chain that now begins with one of its own kind together, as the parser would."""
        if node["boolop"] == "NOT_EXPR":
            return

        first = node["args"][0].get("BoolExpr", {})
        if first.get("boolop") == node["boolop"]:
            node["args"] = [*first["args"], *node["args"][1:]]

    def _operation(self, symbol: str, left: Node, right: Node) -> Node:
        name = [_string(_SYSTEM), _string(symbol)]
        return {"A_Expr": {"kind": "AEXPR_OP", "name": name, "lexpr": left, "rexpr": right}}

    def _copy(self, node: Node) -> Node:
        self._added += _size(node)
        if self._added > _MOST_ADDED:
            raise ValidationFailed(TOO_MANY_PARTS)

        copied: Node = deepcopy(node)
        return copied


_REWRITERS: Mapping[str, Any] = {
    "A_Expr": _Rewriting.expression,
    "FuncCall": _Rewriting.call,
    "SubLink": _Rewriting.sublink,
    "CaseExpr": _Rewriting.case,
    "BoolExpr": _Rewriting.chain,
}


def _size(value: Any) -> int:
    """Return how many nodes and lists there are in a part of a tree."""
    children = value
    if isinstance(value, dict):
        children = value.values()

    size = 1
    for child in children:
        if isinstance(child, (dict, list)):
            size += _size(child)

    return size


def _string(text: str) -> Node:
    return {"String": {"sval": text}}


def _number(number: int) -> Node:
    value = {"ival": number} if number else {}
    return {"A_Const": {"ival": value}}


def _null() -> Node:
    return {"A_Const": {"isnull": True}}


def _is_null(node: Node) -> bool:
    return "isnull" in node.get("A_Const", {})


def _call(name: str, arguments: list[Node]) -> Node:
    names = [_string(_SYSTEM), _string(name)]
    return {
        "FuncCall": {"funcname": names, "args": arguments, "funcformat": "COERCE_EXPLICIT_CALL"}
    }


def _case(whens: list[Node], otherwise: Node) -> Node:
    branches = [{"CaseWhen": when} for when in whens]
    return {"CaseExpr": {"args": branches, "defresult": otherwise}}


def _chain(operator: str, parts: list[Node]) -> Node:
    first = parts[0].get("BoolExpr", {})
    is_chained = operator != "NOT_EXPR" and first.get("boolop") == operator
    if is_chained:
        parts = [*first["args"], *parts[1:]]

    return {"BoolExpr": {"boolop": operator, "args": parts}}
