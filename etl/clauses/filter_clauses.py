"""Reads clauses with conditions: on rows, or on the groups of the figures before."""

from collections.abc import Sequence

from common.text import Text
from etl.clauses.clause_conditions import ConditionReader
from etl.clauses.clause_cutting import Clause
from etl.clauses.clause_reading import RequestReading, said
from etl.clauses.clause_tokens import Token, says
from etl.clauses.join_clauses import JoinClauses
from etl.clauses.request_draft import Json

_FIGURES = ("sum", "avg", "max", "min", "median", "count")
_RANKING_FORM = Text("每个…中{figure}前{count}的{thing}", "top {count} {thing} per … by {figure}")
_SAID_ABOVE = "…"


class FilterClauses:
    """Adds the conditions of a request.

    Args:
        reading: of the request, which is changed.
        joins: of the same request.
    """

    def __init__(self, reading: RequestReading, joins: JoinClauses) -> None:
        self._reading = reading
        self._joins = joins

    def take(self, clause: Clause) -> None:
        """Keep rows or groups, or leave them out."""
        if says(clause.tokens, "having") and self._names_other_table(clause.tokens):
            self._joins.take_having(clause)
            return
        suggestion = self._ranking_meant(clause.tokens)
        if suggestion is not None:
            self._reading.uncovered(said(clause.tokens), [suggestion])
            return
        reading = self._reading
        measures = reading.draft.measures
        reader = ConditionReader(
            clause.tokens, reading.names, reading.findings, reading.order, measures
        )
        found = reader.read(excludes=clause.kind == "exclude")
        for word in found.uncovered:
            reading.uncovered(word)
        reading.add_tables_of(found.conditions)
        if found.conditions:
            self._add(found.conditions)
        elif not found.uncovered:
            reading.left_over(clause.tokens)

    def _names_other_table(self, tokens: Sequence[Token]) -> bool:
        """Tell whether words name a table and nothing that could be compared."""
        base = self._reading.base
        tables = []
        for token in tokens:
            if token.table is not None:
                tables.append(token.table)
        has_other = any(base is None or key != base.key for key in tables)
        return has_other and not says(tokens, "cmp", "null", "notnull", "between")

    def _add(self, conditions: Sequence[Json]) -> None:
        """Add conditions where what they compare is: in the rows, or in the result."""
        rows: list[Json] = []
        groups: list[Json] = []
        for condition in conditions:
            named = self._of_result(condition)
            if named is None:
                rows.append(condition)
            else:
                groups.append(named)
        if rows:
            self._reading.draft.add_row_filter(rows)
        if groups:
            self._reading.draft.add("filter", {"conditions": groups})

    def _of_result(self, condition: Json) -> Json | None:
        """Return the condition with names of the result; None where it is about rows."""
        if "any" in condition:
            parts = []
            for one in condition["any"]:
                parts.append(self._of_result(one))
            known = []
            for one in parts:
                if one is not None:
                    known.append(one)
            if len(known) == len(parts):
                return {"any": known}
            return None
        column = condition["column"]
        draft = self._reading.draft
        for one in (*draft.measures, *self._keys()):
            if column in (one.get("column"), one["as"]):
                return {**condition, "column": one["as"]}
        return None

    def _keys(self) -> Sequence[Json]:
        """Return the keys by which groups may be left out.

        A period is not the date that it cuts. In a follow-up rows are meant: what is left out then
        is not ranked and adds nothing either.
        """
        if self._reading.is_follow_up:
            return ()
        found = []
        for key in self._reading.draft.keys:
            if key.get("unit") is None:
                found.append(key)
        return found

    def _ranking_meant(self, tokens: Sequence[Token]) -> str | None:
        """Return the clause that says "keep the 3 shops with the most …"; None where none does."""
        count = thing = None
        figure = _SAID_ABOVE
        for token in tokens:
            if token.mark.number is not None:
                count = token.text
            elif token.table is not None:
                thing = token.text
            elif token.links("column"):
                figure = token.text
        if count is None or thing is None or not says(tokens, "super"):
            return None
        form = _RANKING_FORM.en if thing.isascii() else _RANKING_FORM.zh
        return form.format(count=count, thing=thing, figure=figure)
