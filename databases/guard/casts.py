"""Judges which types a query may name: casting to a type, or only reading a value of it, may call the user's functions.

A domain checks values by its constraints, and a cast to a type may be a function. The same happens to whatever holds
such a type: arrays, composite types, rows of tables, domains over it. What may have side effects is refused.
"""

from collections.abc import Iterator

from common.errors import ForbiddenObject, StatementRejected
from databases.guard import refusal_texts as texts
from databases.guard.facts import ServerFacts, TypeEffect
from databases.guard.functions import FunctionRule, probed_types
from databases.guard.names import Name
from databases.guard.parsing import parse
from databases.guard.refusal_texts import refused
from databases.guard.walk import Findings, walk


class TypeRule:
    """Judges the names of types, and casts to them."""

    def __init__(self, facts: ServerFacts, functions: FunctionRule) -> None:
        self._facts = facts
        self._functions = functions
        self._checks: dict[str, bool] = {}
        effects = [effect for effect in facts.type_effects if effect.type[0] != "pg_catalog"]
        self._cast_to = frozenset(e.type[1] for e in effects if e.kind == "to" and e.column is None)
        self._holding_cast_to = frozenset(e.type[1] for e in effects if e.kind == "to" and e.column is not None)
        self._catalog = frozenset(e.type[1] for e in effects if e.kind == "catalog" and e.column is None)
        self._checking = frozenset(e.type[1] for e in effects if e.column is None and self.is_risky_check(e))

    def refusals(self, found: Findings) -> Iterator[ForbiddenObject]:
        """Every refusal."""
        yield from (refusal for name in found.types if (refusal := self._named(name)))
        yield from (
            refused(name[-1], texts.RISKY_CAST) for name, source in found.casts if self._is_risky_cast(name, source)
        )
        # `pg_input_is_valid(text, type)` runs the same checks as a cast.
        probed = ((word,) for call in found.calls for word in probed_types(call))
        yield from (refusal for name in probed if (refusal := self._named(name)))
        written_as_calls = (call.parts for call in found.calls if call.name not in self._facts.builtins)
        yield from (refusal for name in written_as_calls if (refusal := self.judge_call(name)))

    def judge_call(self, name: Name) -> ForbiddenObject | None:
        """The refusal of `type(value)` or `value.type`, which is a cast when there is no such function."""
        if name[-1] not in self._facts.types:
            return None
        refusal = self._named(name)
        if refusal is None and self._is_risky_cast(name, "value"):
            return refused(name[-1], texts.RISKY_CAST)
        return refusal

    def is_risky_check(self, effect: TypeEffect) -> bool:
        """Whether checking a value of the type, by a domain's CHECK or a range's bounds, may have side effects."""
        if effect.kind != "check":
            return effect.kind == "bounds"
        if effect.detail not in self._checks:
            self._checks[effect.detail] = self._may_act(effect.detail)
        return self._checks[effect.detail]

    def _may_act(self, check: str) -> bool:
        expression = check.removesuffix(" NOT VALID").removeprefix("CHECK ")
        try:
            (statement,) = parse(f"SELECT {expression}")
            found = walk(statement.kind, statement.node)
        except StatementRejected:
            return True
        own_symbols = self._facts.volatile_operators - self._facts.shared_operators
        return (
            any(map(self._functions.is_risky, found.calls))
            or any(name[-1] in own_symbols for name in found.operators if name)
            or any(self._is_risky_cast(name, source) for name, source in found.casts)
        )

    def _named(self, name: Name) -> ForbiddenObject | None:
        if name[:-1] == ("pg_catalog",):
            return None
        if name[-1] in self._catalog:
            return refused(name[-1], texts.HOLDS_CATALOG_TYPE)
        return refused(name[-1], texts.RISKY_CHECK) if name[-1] in self._checking else None

    def _is_risky_cast(self, name: Name, source: str) -> bool:
        if source == "text" or name[:-1] == ("pg_catalog",):
            return False
        # A row is cast field by field.
        return name[-1] in (self._holding_cast_to if source == "row" else self._cast_to)
