"""Which table, column or value a word of the question means, given the other words.

The same word often names several things ("name", "city", "Rock"). Each candidate is scored by how much of its name was
said and by how near its table is to the tables the question mentions; two equally good candidates in different places
stay a question for the user.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from common.meanings import TableKey
from rules.linking.mark import Mark, Noun
from rules.schema.joins import is_default
from rules.schema.lexicon import Lexicon
from rules.schema.links import Link

# The context of a word may raise a candidate's quality by at most this share, so that a part of one name never beats
# the whole of another.
_MOST_CONTEXT = {"column": 0.3, "value": 0.8, "table": 0.0}
_HEAD_WORD, _NAMED, _OWN = 0.7, 0.7, 0.2
_PASSED = ("of", "noise", "cmp", "not", "each", "sum", "avg", "max", "min", "super", "from", "with", "verb", "which")
_LEAST_QUALITY = 0.4
_WHOLE_NAME = 0.9


_Scored = Sequence[tuple[float, Link]]


@dataclass(frozen=True)
class _Surroundings:
    """What stands around a word: tables mentioned anywhere or leant to, and what is named right before or after it."""

    mentioned: dict[TableKey, float]
    leaning: dict[TableKey, float]
    tables_beside: set[TableKey]
    columns_beside: set[tuple[TableKey, str | None]]


def nouns_of(
    marks: Sequence[Mark], lexicon: Lexicon, hint: str | None = None, context: Mapping[TableKey, float] | None = None
) -> list[Noun | None]:
    """What each of the marks names, None for those that name nothing.

    Args:
        hint: the table that the caller says the question is about.
        context: tables that earlier questions were about, with their weight; a table named in this question weighs 1.
    """
    return _Linker(lexicon, hint, context or {}).nouns(marks)


class _Linker:
    """Resolves the marks of one question."""

    def __init__(self, lexicon: Lexicon, hint: str | None, context: Mapping[TableKey, float]) -> None:
        self._lexicon, self._graph, self._spoken_of = lexicon, lexicon.graph, context
        self._hint = hint.lower() if hint else None

    def nouns(self, marks: Sequence[Mark]) -> list[Noun | None]:
        """See `nouns_of`."""
        mentioned = self._mentioned_tables(marks)
        first = [self._noun(marks, index, mentioned, {}) for index in range(len(marks))]
        second = [
            self._noun(marks, index, mentioned, self._leaning(first[:index] + first[index + 1 :]))
            for index in range(len(marks))
        ]
        second = [None if self._only_counts(marks, second, index) else noun for index, noun in enumerate(second)]
        self._join_parted(marks, second)
        return second

    def _join_parted(self, marks: Sequence[Mark], nouns: list[Noun | None]) -> None:
        """`患者平均年龄`: a column's name with a function inside it is still that column (患者年龄)."""
        for index in range(1, len(marks) - 1):
            parted = marks[index].means("avg", "sum", "max", "min") and nouns[index] is None
            grouped = index > 1 and (marks[index - 2].means("each", "by", "which"))
            if not parted or grouped or nouns[index - 1] is None or nouns[index + 1] is None:
                continue
            whole = self._lexicon.find(marks[index - 1].text + marks[index + 1].text)
            columns = tuple((link.quality, link) for link in whole if link.kind == "column" and link.quality >= 0.95)
            if columns and not marks[index - 1].text.isascii():
                nouns[index - 1], nouns[index + 1] = None, Noun(columns=columns)

    def _only_counts(self, marks: Sequence[Mark], nouns: Sequence[Noun | None], index: int) -> bool:
        """Whether a word that is also a column's name only counts or measures what stands before it.

        `数量` counts the table before it, which has no such column; `kg` after a number is its unit.
        """
        noun, mark, before = nouns[index], marks[index], nouns[index - 1] if index else None
        if noun is None:
            return False
        if index and mark.means("unit") and marks[index - 1].number is not None:
            return True  # "over 1200 kg", where a column is called payload_kg
        if mark.means("bucket") and not self._describes(noun, marks, nouns, index):
            return True
        if mark.means("sum", "avg", "max", "min", "count") and not noun.is_value:
            after = self._next_noun(marks, nouns, index)
            if after is not None and not after.is_value and self._is_measured(noun, after):
                return True
        if not mark.means("count") or before is None or before.table is None or not before.is_table:
            return False
        return not any(link.table == before.table.table and link.quality >= 0.9 for _, link in noun.columns)

    def _describes(self, noun: Noun, marks: Sequence[Mark], nouns: Sequence[Noun | None], index: int) -> bool:
        """Whether a word such as `annual` is a stored value there: right before its table or beside its column."""
        after, before = self._next_noun(marks, nouns, index), nouns[index - 1] if index else None
        named = {after.table.table} if after is not None and after.is_table and after.table is not None else set()
        beside = {(one.table, one.column) for other in (after, before) if other for _, one in other.columns}
        if any(link.table in named or (link.table, link.column) in beside for _, link in noun.values):
            return True
        return not noun.values and noun.columns != () and noun.columns[0][1].quality >= 0.95

    def _next_noun(self, marks: Sequence[Mark], nouns: Sequence[Noun | None], index: int) -> Noun | None:
        place = index + 1
        while place < len(marks) and nouns[place] is None and marks[place].means("of", "noise"):
            place += 1
        return nouns[place] if place < len(marks) else None

    def _is_measured(self, noun: Noun, after: Noun) -> bool:
        """Whether an aggregate's word (`total`), though also a column's name, is followed by what it aggregates."""
        if after.is_table and after.table is not None:
            return not any(link.table == after.table.table for _, link in noun.columns)
        schema = self._lexicon.schema
        return any(
            schema.facts[link.table].is_measure(schema.column(link.table, link.column or ""))
            for _, link in after.columns[:1]
        )

    def _mentioned_tables(self, marks: Sequence[Mark]) -> dict[TableKey, float]:
        mentioned: dict[TableKey, float] = {}
        for mark in marks:
            best = mark.quality
            for link in mark.links:
                if link.kind == "table" and link.quality >= max(0.6, best - 0.12):
                    mentioned[link.table] = max(mentioned.get(link.table, 0.0), link.quality)
        for key in self._lexicon.schema.facts if self._hint else ():
            if self._hint in (key[1].lower(), f"{key[0]}.{key[1]}".lower()):
                mentioned[key] = 1.5
        for key, weight in self._spoken_of.items():
            mentioned.setdefault(key, weight)
        return mentioned

    def _leaning(self, nouns: Sequence[Noun | None]) -> dict[TableKey, float]:
        """Tables that own the columns and values that were chosen without doubt, with their weights."""
        leaning: dict[TableKey, float] = {}
        for noun in nouns:
            for scored in (noun.columns, noun.values) if noun else ():
                close = [link.table for score, link in scored if score >= scored[0][0] - 0.1]
                if 0 < len(close) <= 2:
                    leaning.update(dict.fromkeys(close, 0.12 / len(close)))
        return leaning

    def _noun(
        self, marks: Sequence[Mark], index: int, mentioned: dict[TableKey, float], leaning: dict[TableKey, float]
    ) -> Noun | None:
        mark = marks[index]
        if not mark.links:
            return None
        around = _Surroundings(mentioned, leaning, *self._beside(marks, index))
        tables = [link for link in mark.links if link.kind == "table" and link.quality >= _LEAST_QUALITY]
        scored = [
            (link.quality * (1 + self._context_within(link, around)), link)
            for link in mark.links
            if link.kind != "table" and link.quality >= _LEAST_QUALITY
        ]
        scored.sort(key=lambda item: -item[0])
        columns = tuple(item for item in scored if item[1].kind == "column")
        values = tuple(item for item in scored if item[1].kind == "value")
        if values and self._is_role(mark, columns, values, mentioned):
            values = ()  # "managers" beside a column manager_id, though a job is called "Manager"
        names = max((link.quality for link in mark.links if link.kind != "value"), default=0.0)
        if names >= _WHOLE_NAME and not self._is_said_as_value(mark, index, values, around):
            # What a table or column is called is not one of the values that happen to read the same.
            values = tuple((score, replace(link, quality=min(link.quality, names))) for score, link in values)
        referenced = self._referenced(columns)
        best = max(tables, key=lambda link: link.quality + 0.1 * (mentioned.get(link.table, 0) > 1), default=referenced)
        noun = self._as_entity(Noun(best, columns, values))
        if referenced is not None and (noun.table is None or noun.table.table == referenced.table):
            noun = replace(noun, table=referenced)
        return noun if tables or columns or values else None

    def _is_said_as_value(self, mark: Mark, index: int, values: _Scored, around: _Surroundings) -> bool:
        """Whether a word that is a name as well is a value there: beside its column, or capitalised as it is stored."""
        if any((link.table, link.column) in around.columns_beside for _, link in values):
            return True
        is_proper = index > 0 and mark.text != mark.text.lower()
        return is_proper and any(link.value == mark.text for _, link in values)

    def _context_within(self, link: Link, around: _Surroundings) -> float:
        """How much the context adds: most to the columns of a thing that is named itself."""
        most = _MOST_CONTEXT[link.kind]
        if link.kind == "column" and link.quality >= _HEAD_WORD and around.mentioned.get(link.table, 0.0) >= _NAMED:
            return most + _OWN
        return min(self._context(link, around), most)

    def _as_entity(self, noun: Noun) -> Noun:
        """A word that best matches a thing's name or key column (`公司` of 公司名称) means the thing."""
        table, column = noun.table, noun.column
        if table is None or column is None or table.quality < 0.6 or column.table != table.table:
            return noun
        facts = self._lexicon.schema.facts[table.table]
        names = column.column in facts.display or facts.key == (column.column,)
        if not facts.is_entity or not names or column.quality >= 0.9:
            return noun
        return replace(noun, table=replace(table, quality=max(table.quality, column.quality)))

    def _is_role(self, mark: Mark, columns: _Scored, values: _Scored, mentioned: Mapping[TableKey, float]) -> bool:
        """Whether a word is what a reference points to, not a value: "devices without an owner"."""
        column = columns[0][1] if columns else None
        if column is None or column.quality < 0.5 or mark.text != mark.text.lower():
            return False
        if column.column not in self._lexicon.schema.facts[column.table].reference_columns:
            return False
        of_another = column.table in mentioned and all(link.table not in mentioned for _, link in values)
        return of_another or all(link.value != mark.text for _, link in values)

    def _referenced(self, columns: _Scored) -> Link | None:
        """The entity that the best column points to by its plain reference: `所属分类` names the category."""
        if not columns or columns[0][1].quality < 0.6:
            return None
        link = columns[0][1]
        for edge in self._lexicon.schema.facts[link.table].edges:
            entity = self._lexicon.schema.facts[edge.parent]
            if edge.columns == (link.column,) and is_default(edge) and entity.is_entity:
                return Link("table", edge.parent, None, None, link.quality, link.spelling)
        return None

    def _beside(self, marks: Sequence[Mark], index: int) -> tuple[set[TableKey], set[tuple[TableKey, str | None]]]:
        """Tables and columns named right before or after the word; words that only connect are skipped."""
        tables: set[TableKey] = set()
        columns: set[tuple[TableKey, str | None]] = set()
        for step in (-1, 1):
            place = index + step
            while 0 <= place < len(marks) and (marks[place].means(*_PASSED) and not marks[place].links):
                place += step
            if 0 <= place < len(marks):
                best = marks[place].quality
                tables |= {
                    link.table for link in marks[place].links if link.kind == "table" and link.quality >= best - 0.15
                }
                columns |= {(link.table, link.column) for link in marks[place].links if link.kind == "column"}
        return tables, columns

    def _context(self, link: Link, around: _Surroundings) -> float:
        mentioned, leaning = around.mentioned, around.leaning
        score = 0.25 if link.table in around.tables_beside else 0.0
        if link.kind == "value":
            score += 0.3 if (link.table, link.column) in around.columns_beside else 0.0
        if self._lexicon.schema.table(link.table).kind != "table" and link.table not in mentioned:
            score -= 0.35
        score += leaning.get(link.table, 0.0) or (0.5 if mentioned else 1.0) * self._nearness(link.table, leaning)
        return score + self._nearness(link.table, mentioned)

    def _nearness(self, table: TableKey, mentioned: dict[TableKey, float]) -> float:
        if not mentioned:
            return 0.0
        if table in mentioned:
            return 0.12 * mentioned[table]
        steps = [self._graph.distance(table, other) for other in mentioned]
        known = [count for count in steps if count is not None]
        return 0.12 / (1 + min(known)) if known else -0.1
