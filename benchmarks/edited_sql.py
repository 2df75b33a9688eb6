"""SELECTs broken as somebody breaks them who edits the text: a word changed, a line deleted.

Nothing here knows the trees that drafts are made of, nor the operators by which drafts break their
own models.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot.dialects import Postgres
from sqlglot.tokenizer_core import Token, TokenType

Columns = Mapping[str, Sequence[str]]
"""The columns of each relation, by the name that the text uses."""

_WORDS: dict[str, tuple[str, ...]] = {
    "LEFT JOIN": ("INNER JOIN", "RIGHT JOIN", "FULL JOIN"),
    "INNER JOIN": ("LEFT JOIN",),
    "UNION ALL": ("UNION",),
    "SELECT DISTINCT": ("SELECT",),
    "COUNT ( DISTINCT": ("COUNT(",),
    "IS DISTINCT FROM": ("<>", "IS NOT DISTINCT FROM"),
    "NOT EXISTS": ("EXISTS",),
    "NOT": ("",),
    "EXISTS": ("NOT EXISTS",),
    "AND": ("OR",),
    "OR": ("AND",),
    "DESC": ("ASC",),
    "ASC": ("DESC",),
    "SUM": ("AVG", "MAX", "COUNT"),
    "AVG": ("SUM", "MIN"),
    "MIN": ("MAX",),
    "MAX": ("MIN",),
    "COUNT": ("SUM",),
    "ROW_NUMBER": ("RANK",),
    "RANK": ("DENSE_RANK", "ROW_NUMBER"),
    "DENSE_RANK": ("RANK",),
    "LAG": ("LEAD",),
    "LEAD": ("LAG",),
    "PERCENTILE_CONT": ("PERCENTILE_DISC",),
    "TRUE": ("FALSE",),
    "FALSE": ("TRUE",),
    "ROWS": ("RANGE",),
    "PRECEDING": ("FOLLOWING",),
    "=": ("<>",),
    "<>": ("=",),
    "<": ("<=", ">"),
    "<=": ("<", ">="),
    ">": (">=", "<"),
    ">=": (">", "<="),
    "+": ("-",),
    "-": ("+",),
    "*": ("/",),
    "/": ("*",),
}
_TEXTS: dict[str, tuple[str, ...]] = {
    "HOUR": ("DAY",),
    "DAY": ("WEEK", "MONTH"),
    "WEEK": ("DAY", "MONTH"),
    "MONTH": ("QUARTER", "YEAR", "WEEK"),
    "QUARTER": ("MONTH", "YEAR"),
    "YEAR": ("QUARTER",),
}
_FIRST_ARGUMENTS = ("COALESCE", "NULLIF")
_ENDS_OF_CONDITION = ("AND", "OR", "GROUP BY", "ORDER BY", "LIMIT", "UNION ALL", "HAVING", "WHERE")


@dataclass(frozen=True)
class Edit:
    """A change of the text, and the whole text after it."""

    kind: str
    detail: str
    sql: str


def edits(sql: str, columns: Columns) -> Iterator[Edit]:
    """Yield the text with one change at a time; not each of them is SQL."""
    text = _Text(sql)
    yield from text.other_words()
    yield from text.other_values()
    yield from text.without_conditions()
    yield from text.without_guards()
    yield from text.without_items()
    yield from text.other_columns(columns)
    yield from text.more_conditions(columns)
    yield from text.changed_outputs()


class _Text:
    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._tokens: list[Token] = Postgres().tokenize(sql)

    def _edit(self, kind: str, first: Token, last: Token, text: str) -> Edit:
        before = self._sql[first.start : last.end + 1]
        line = self._sql.count("\n", 0, first.start) + 1
        changed = f"{self._sql[: first.start]}{text}{self._sql[last.end + 1 :]}"
        return Edit(kind, f"line {line}: {text or 'nothing'} for {before}", changed)

    def _word(self, place: int) -> str:
        if place >= len(self._tokens):
            return ""
        token = self._tokens[place]
        is_word = token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
        return token.text.upper() if is_word else ""

    def _phrase(self, place: int, count: int) -> str:
        return " ".join(self._word(one) for one in range(place, place + count))

    def other_words(self) -> Iterator[Edit]:
        """Change a keyword, an operator or a function."""
        for place, token in enumerate(self._tokens):
            for words, others in _WORDS.items():
                count = len(words.split())
                if self._phrase(place, count) != words:
                    continue
                last = self._tokens[place + count - 1]
                for other in others:
                    yield self._edit("word", token, last, other)

    def other_values(self) -> Iterator[Edit]:
        """Change a number, a text or the unit of a period."""
        for token in self._tokens:
            if token.token_type is TokenType.NUMBER:
                yield self._edit(
                    "value", token, token, str(float(token.text) + 1).removesuffix(".0")
                )
            if token.token_type is not TokenType.STRING:
                continue
            for other in _TEXTS.get(token.text.upper(), (f"{token.text}x", "")):
                quoted = other.replace("'", "''")
                yield self._edit("value", token, token, f"'{quoted}'")

    def without_conditions(self) -> Iterator[Edit]:
        """Delete a condition, with the word before it."""
        for place, token in enumerate(self._tokens):
            word = self._word(place)
            if word not in ("WHERE", "AND", "OR", "HAVING"):
                continue
            end = self._end(place + 1, _ENDS_OF_CONDITION)
            follows = self._word(end + 1)
            text = word if word == "WHERE" and follows in ("AND", "OR") else ""
            last = self._tokens[end + 1] if text else self._tokens[end]
            yield self._edit("condition", token, last, text)

    def _end(self, place: int, ends: Sequence[str]) -> int:
        """Return the place of the last token before one of these words, or a bracket's end."""
        depth = 0
        while place < len(self._tokens):
            token = self._tokens[place]
            if token.token_type is TokenType.L_PAREN:
                depth += 1
            if token.token_type is TokenType.R_PAREN:
                depth -= 1
            is_end = depth == 0 and self._word(place) in ends
            if depth < 0 or is_end:
                break
            place += 1
        return place - 1

    def without_guards(self) -> Iterator[Edit]:
        """Leave the first argument of COALESCE and NULLIF, delete ELSE, FILTER and frames."""
        for place, token in enumerate(self._tokens):
            word = self._word(place)
            if word in _FIRST_ARGUMENTS:
                comma = self._end(place + 2, (",",))
                close = self._end(place + 2, ())
                first = self._sql[self._tokens[place + 2].start : self._tokens[comma].end + 1]
                yield self._edit("guard", token, self._tokens[close + 1], first)
            if word == "ELSE":
                end = self._end(place + 1, ("END",))
                yield self._edit("guard", token, self._tokens[end], "")
            if word == "FILTER":
                close = self._end(place + 2, ())
                yield self._edit("guard", token, self._tokens[close + 1], "")
            if word in ("PARTITION BY", "LIMIT"):
                end = self._end(place + 1, ("ORDER BY", "ROWS", "RANGE"))
                yield self._edit("guard", token, self._tokens[end], "")

    def without_items(self) -> Iterator[Edit]:
        """Delete what stands behind a comma: a key of a group, an order or a partition."""
        for place, token in enumerate(self._tokens):
            if self._word(place) not in ("GROUP BY", "ORDER BY", "PARTITION BY"):
                continue
            ends = ("HAVING", "ORDER BY", "LIMIT", "UNION ALL", "ROWS", "RANGE")
            end = self._end(place + 1, ends)
            commas = [one for one in range(place, end) if self._word(one) == ","]
            for comma in commas:
                last = min(self._end(comma + 1, (",", *ends)), end)
                yield self._edit("item", self._tokens[comma], self._tokens[last], "")
            if commas:
                yield self._edit("item", self._tokens[place + 1], self._tokens[commas[0]], "")
            if not commas and self._word(place) == "ORDER BY":
                yield self._edit("item", token, self._tokens[end], "")

    def other_columns(self, columns: Columns) -> Iterator[Edit]:
        """Name another column of the same relation."""
        for place in range(2, len(self._tokens)):
            relation, dot, token = self._tokens[place - 2 : place + 1]
            if dot.token_type is not TokenType.DOT or relation.text not in columns:
                continue
            others = [name for name in columns[relation.text] if name != token.text]
            for other in others[:3]:
                quoted = other.replace('"', '""')
                yield self._edit("column", token, token, f'"{quoted}"')

    def more_conditions(self, columns: Columns) -> Iterator[Edit]:
        """Leave out rows in which a column is NULL."""
        for place, token in enumerate(self._tokens):
            if self._word(place) != "FROM" or place + 1 >= len(self._tokens):
                continue
            source = self._tokens[place + 1]
            names = columns.get(source.text)
            has_alias = self._word(place + 2) == "AS"
            if names is None:
                continue
            last = self._tokens[place + 3] if has_alias else source
            table = self._sql[source.start : source.end + 1]
            alias = self._sql[last.start : last.end + 1]
            for name in names:
                quoted = '"' + name.replace('"', '""') + '"'
                kept = f"FROM (SELECT * FROM {table} WHERE {quoted} IS NOT NULL) AS {alias}"
                yield self._edit("more", token, last, kept)
            yield self._edit("more", token, last, f"FROM (TABLE {table} LIMIT 3) AS {alias}")
            twice = f"FROM (TABLE {table} UNION ALL TABLE {table}) AS {alias}"
            yield self._edit("more", token, last, twice)

    def changed_outputs(self) -> Iterator[Edit]:
        """Change a value before it is handed on, and take equal rows once."""
        for place, token in enumerate(self._tokens):
            if self._word(place) == "SELECT" and self._word(place + 1) != "DISTINCT":
                yield self._edit("output", token, token, "SELECT DISTINCT")
            if self._word(place) not in ("SELECT", ","):
                continue
            end = self._end(place + 1, (",", "FROM", "AS"))
            if self._word(end + 1) not in ("AS", ",", "FROM") or end <= place:
                continue
            first, last = self._tokens[place + 1], self._tokens[end]
            value = self._sql[first.start : last.end + 1]
            name = (
                "" if self._word(end + 1) == "AS" else f" AS {self._sql[last.start : last.end + 1]}"
            )
            for changed in (
                "COALESCE({}, 0)",
                "ABS({})",
                "ROUND({})",
                "LOWER({})",
                "NULLIF({}, 0)",
            ):
                yield self._edit("output", first, last, changed.format(value) + name)
