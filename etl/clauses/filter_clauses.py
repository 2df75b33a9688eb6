"""Reads clauses with conditions: on rows, or on the groups of the figures before."""

from collections.abc import Sequence

from common.text import Text
from etl.clauses.clause_cutting import Clause
from etl.clauses.clause_reading import ClauseReader, RequestReading, said
from etl.clauses.clause_tokens import Token, says, table_words
from etl.clauses.join_clauses import JoinClauses
from etl.clauses.request_draft import Json

_RANKING_FORM = Text("每个…中{figure}前{count}的{thing}", "top {count} {thing} per … by {figure}")
_SAID_ABOVE = "…"


class FilterClauses(ClauseReader):
    """Adds the conditions of a request.

    Args:
        reading: of the request, which is changed.
        joins: of the same request.
    """

    def __init__(self, reading: RequestReading, joins: JoinClauses) -> None:
        super().__init__(reading)
        self._joins = joins

    def take(self, clause: Clause) -> None:
        """Keep rows or groups, or leave them out."""
        if says(clause.tokens, "having") and self._names_other_table(clause.tokens):
            self._joins.take_having(clause)
            return

        suggestion = self._ranking_meant(clause.tokens)
        if suggestion is not None:
            self._reading.refuse_word(said(clause.tokens), [suggestion])
            return

        found = self._reading.conditions(
            clause.tokens,
            measures=self._draft.measures,
            excludes=clause.kind == "exclude",
        )
        self._reading.add_tables_of(found.conditions)
        if found.conditions:
            self._add(found.conditions)
        elif not found.uncovered:
            self._reading.refuse_clause(clause.tokens)

    def _names_other_table(self, tokens: Sequence[Token]) -> bool:
        """Tell whether words name a table and nothing that could be compared."""
        if says(tokens, "cmp", "null", "notnull", "between"):
            return False

        base = self._reading.base
        own = base.key if base is not None else None
        return any(token.table != own for token in table_words(tokens))

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
            self._draft.add_row_filter(rows)
        if groups:
            self._draft.add("filter", {"conditions": groups})

    def _of_result(self, condition: Json) -> Json | None:
        """Return the condition with names of the result; None where it is about rows."""
        if "any" in condition:
            return self._any_of_result(condition["any"])

        column = condition["column"]
        for one in (*self._draft.measures, *self._keys()):
            if column in (one.get("column"), one["as"]):
                return {**condition, "column": one["as"]}

        return None

    def _any_of_result(self, alternatives: Sequence[Json]) -> Json | None:
        """Return alternatives with names of the result; None where one is about rows."""
        named: list[Json] = []
        for condition in alternatives:
            one = self._of_result(condition)
            if one is None:
                return None

            named.append(one)

        return {"any": named}

    def _keys(self) -> Sequence[Json]:
        """Return the keys by which groups may be left out.

        A period is not the date that it cuts. In a follow-up rows are meant: what is left out then
        is not ranked and adds nothing either.
        """
        if self._reading.is_follow_up:
            return ()

        return self._draft.plain_keys

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
