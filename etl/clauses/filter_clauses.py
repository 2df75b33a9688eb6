"""Reads clauses with conditions: on source rows, or on groups and figures of the result."""

from collections.abc import Sequence

from common.text import Text
from etl.clauses.clause_cutting import Clause
from etl.clauses.clause_reading import ClauseReader, Exclusion, RequestReading, text_of_words
from etl.clauses.clause_tokens import Token, says, table_words
from etl.clauses.join_clauses import JoinClauses
from etl.clauses.request_draft import Json

_RANKING_FORM = Text("每个…中{figure}前{count}的{thing}", "top {count} {thing} per … by {figure}")
_SAID_ABOVE = "…"


class FilterClauses(ClauseReader):
    """Adds the conditions of a request.

    Args:
        reading: the reading of the request, which is changed.
        joins: the joins of the same request.
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
            self._reading.refuse_word(text_of_words(clause.tokens), [suggestion])
            return

        excludes = clause.kind == "exclude"
        conditions = self._reading.conditions(
            clause.tokens, measures=self._draft.measures, excludes=excludes
        )
        self._reading.add_tables_of(conditions.conditions, excludes=excludes)
        if conditions.conditions:
            exclusion = Exclusion(conditions.excluding, conditions.conditions)
            self._reading.exclusions.append(exclusion)
            self._add(conditions.conditions)
        elif not conditions.uncovered:
            self._reading.refuse_clause(clause.tokens)

    def _names_other_table(self, tokens: Sequence[Token]) -> bool:
        """Tell whether words name a table and nothing that could be compared."""
        if says(tokens, "cmp", "null", "notnull", "between"):
            return False

        base = self._reading.base
        own = base.key if base is not None else None
        return any(token.table != own for token in table_words(tokens))

    def _add(self, conditions: Sequence[Json]) -> None:
        """Add conditions on columns of the result to a filter of it, others to one of the rows."""
        rows: list[Json] = []
        groups: list[Json] = []
        for condition in conditions:
            on_result = self._on_result(condition)
            if on_result is None:
                rows.append(condition)
            else:
                groups.append(on_result)

        if rows:
            self._draft.add_row_filter(rows)
        if groups:
            self._draft.add("filter", {"conditions": groups})

    def _on_result(self, condition: Json) -> Json | None:
        """Return the condition on a column of the result; None where it compares source rows."""
        if "any" in condition:
            return self._any_on_result(condition["any"])

        column = condition["column"]
        for output in (*self._draft.measures, *self._filterable_keys()):
            if column in (output.get("column"), output["as"]):
                return {**condition, "column": output["as"]}

        return None

    def _any_on_result(self, alternatives: Sequence[Json]) -> Json | None:
        """Return the alternatives on columns of the result; None where one compares source rows."""
        conditions: list[Json] = []
        for condition in alternatives:
            on_result = self._on_result(condition)
            if on_result is None:
                return None

            conditions.append(on_result)

        return {"any": conditions}

    def _filterable_keys(self) -> Sequence[Json]:
        """Return the grouping keys on which a condition may filter groups.

        Periods are none of them: a condition on a date is not one on the period it falls in. A
        follow-up has none, as its conditions filter rows before these are added up and ranked.
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
