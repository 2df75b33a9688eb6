"""Which table, column or value a word of the question means, given the other words.

The same word often names several things ("name", "city", "Rock"). Each candidate is scored by how
much of its name was said and by how near its table is to the tables the question mentions; two
equally good candidates in different places stay a question for the user.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from common.cpu_clock import check
from common.meanings import TableKey
from rules.linking.mark import Mark, Noun
from rules.linking.proximity import MentionedOwners, Proximity
from rules.schema.lexicon import Lexicon
from rules.schema.links import Link
from rules.schema.reference_graph import is_default

# The context of a word may raise a candidate's quality by at most this share, so that a part of one
# name never beats the whole of another.
_MOST_CONTEXT = {"column": 0.3, "value": 0.8, "table": 0.0}
_HEAD_WORD, _NAMED, _OWN = 0.7, 0.7, 0.2
# Words that only connect: what stands beyond them stands beside a word as well.
_PASSED = (
    "of", "noise", "cmp", "not", "each", "sum", "avg", "max", "min", "super", "from", "with",
    "verb", "which",
)  # fmt: skip
_FUNCTIONS = ("avg", "sum", "max", "min")
_LEAST_QUALITY = 0.4
_WHOLE_NAME = 0.9
_WHOLE_COLUMN = 0.95
_LEAST_TABLE, _LEAST_ROLE = 0.6, 0.5
_RIVAL_TABLE, _RIVAL_BESIDE = (
    0.12,
    0.15,
)  # by which a table may be worse than what a word best names
_HINTED = 1.5  # weight of the table that the caller names; one that the question names has up to 1
_CHOSEN = 0.1  # what a hinted table gains over others that a word names
_BESIDE_TABLE, _BESIDE_COLUMN, _OF_VIEW = 0.25, 0.3, -0.35
_LEANT_TO_BESIDE_NAMED = 0.5

_Scored = tuple[tuple[float, Link], ...]
_ColumnKey = tuple[TableKey, str | None]


@dataclass(frozen=True)
class _Surroundings:
    """The surroundings of a word.

    Attributes:
        owners: tables that other words lean to, with their weights.
        proximity: all tables that words lean to.
        tables_beside, columns_beside: what is named right before or after it.
    """

    owners: Mapping[TableKey, float]
    proximity: Proximity
    tables_beside: set[TableKey]
    columns_beside: set[_ColumnKey]


def nouns_of(
    marks: Sequence[Mark],
    lexicon: Lexicon,
    hint: str | None = None,
    context: Mapping[TableKey, float] | None = None,
) -> list[Noun | None]:
    """Return the thing that each mark names; None for marks that name nothing.

    Args:
        hint: the table that the caller says the question is about.
        context: tables that earlier questions were about, with their weight; a table named in this
            question weighs 1.
    """
    mentioned = _mentioned_tables(marks, lexicon, hint, context or {})
    return _Linker(marks, lexicon, mentioned).nouns()


def _mentioned_tables(
    marks: Sequence[Mark],
    lexicon: Lexicon,
    hint: str | None,
    context: Mapping[TableKey, float],
) -> dict[TableKey, float]:
    """Give the tables that the question is about, with their weights."""
    mentioned: dict[TableKey, float] = {}
    for mark in marks:
        least = max(_LEAST_TABLE, mark.quality - _RIVAL_TABLE)
        for link in mark.links:
            if link.kind == "table" and link.quality >= least:
                mentioned[link.table] = max(mentioned.get(link.table, 0.0), link.quality)

    if hint:
        mentioned.update(dict.fromkeys(_hinted_tables(hint.lower(), lexicon), _HINTED))

    for key, weight in context.items():
        mentioned.setdefault(key, weight)

    return mentioned


def _hinted_tables(hint: str, lexicon: Lexicon) -> list[TableKey]:
    tables = lexicon.schema.facts
    return [key for key in tables if hint in (key[1].lower(), f"{key[0]}.{key[1]}".lower())]


class _Linker:
    """Resolves the marks of one question.

    Args:
        mentioned: the tables that the question is about, with their weights.
    """

    def __init__(
        self, marks: Sequence[Mark], lexicon: Lexicon, mentioned: Mapping[TableKey, float]
    ) -> None:
        self._marks = marks
        self._lexicon = lexicon
        self._schema = lexicon.schema
        self._mentioned = mentioned
        self._near_mentioned = Proximity(lexicon.graph, mentioned)

    def nouns(self) -> list[Noun | None]:
        nowhere = Proximity(self._lexicon.graph, {})
        first = [self._noun(index, {}, nowhere) for index in range(len(self._marks))]
        owners = MentionedOwners(first)
        proximity = Proximity(self._lexicon.graph, owners.weights)
        nouns = [
            self._noun(index, owners.without(index), proximity) for index in range(len(self._marks))
        ]
        nouns = [
            None if self._only_counts(nouns, index) else noun for index, noun in enumerate(nouns)
        ]
        self._join_parted(nouns)
        return nouns

    # --------------------------------------------------------------------------
    # one word

    def _noun(
        self, index: int, owners: Mapping[TableKey, float], proximity: Proximity
    ) -> Noun | None:
        """Return the thing that the word at `index` names."""
        mark = self._marks[index]
        if not mark.links:
            return None

        check()
        around = _Surroundings(owners, proximity, *self._beside(index))
        tables = [
            link for link in mark.links if link.kind == "table" and link.quality >= _LEAST_QUALITY
        ]
        columns = self._scored(mark, "column", around)
        values = self._values(index, columns, around)
        if not (tables or columns or values):
            return None

        referenced = self._referenced(columns)
        best = max(tables, key=self._weight_of_table, default=referenced)
        noun = self._as_entity(Noun(best, columns, values))
        if referenced is not None and (noun.table is None or noun.table.table == referenced.table):
            noun = replace(noun, table=referenced)

        return noun

    def _weight_of_table(self, link: Link) -> float:
        is_hinted = self._mentioned.get(link.table, 0) > 1
        return link.quality + (_CHOSEN if is_hinted else 0.0)

    def _scored(self, mark: Mark, kind: str, around: _Surroundings) -> _Scored:
        """Give the columns or values that the word may name, with their scores, best first."""
        scored = [
            (link.quality * (1 + self._context_within(link, around)), link)
            for link in mark.links
            if link.kind == kind and link.quality >= _LEAST_QUALITY
        ]
        scored.sort(key=lambda item: -item[0])
        return tuple(scored)

    def _values(self, index: int, columns: _Scored, around: _Surroundings) -> _Scored:
        """Give the stored values that the word may be, with their scores, best first."""
        mark = self._marks[index]
        values = self._scored(mark, "value", around)
        if not values:
            return ()
        if self._is_role(mark, columns, values):
            return ()  # "managers" beside a column manager_id, though a job is called "Manager"

        names = max((link.quality for link in mark.links if link.kind != "value"), default=0.0)
        if names < _WHOLE_NAME or self._is_said_as_value(index, values, around):
            return values

        # What a table or column is called is not one of the values that happen to read the same.
        return tuple(
            (score, replace(link, quality=min(link.quality, names))) for score, link in values
        )

    def _is_said_as_value(self, index: int, values: _Scored, around: _Surroundings) -> bool:
        """Tell whether a word that is a name as well is a value there.

        It stands beside its column, or is capitalised as it is stored.
        """
        if any((link.table, link.column) in around.columns_beside for _, link in values):
            return True

        text = self._marks[index].text
        is_proper = index > 0 and text != text.lower()
        return is_proper and any(link.value == text for _, link in values)

    def _as_entity(self, noun: Noun) -> Noun:
        """Take a word that best matches a thing's name or key column for the thing itself.

        `公司` of 公司名称 means the company.
        """
        table, column = noun.table, noun.column
        if table is None or column is None or column.table != table.table:
            return noun
        if table.quality < _LEAST_TABLE or column.quality >= _WHOLE_NAME:
            return noun

        facts = self._schema.facts[table.table]
        names_it = column.column in facts.display or facts.key == (column.column,)
        if not facts.is_entity or not names_it:
            return noun

        return replace(noun, table=replace(table, quality=max(table.quality, column.quality)))

    def _is_role(self, mark: Mark, columns: _Scored, values: _Scored) -> bool:
        """Tell whether a word is what a reference points to, not a value.

        "devices without an owner" speaks of the column owner_id.
        """
        is_written_small = mark.text == mark.text.lower()
        if not columns or not is_written_small:
            return False

        _, column = columns[0]
        if column.quality < _LEAST_ROLE:
            return False

        facts = self._schema.facts[column.table]
        if column.column not in facts.reference_columns:
            return False

        tables = {link.table for _, link in values}
        if column.table in self._mentioned and tables.isdisjoint(self._mentioned):
            return True

        texts = {link.value for _, link in values}
        return mark.text not in texts

    def _referenced(self, columns: _Scored) -> Link | None:
        """Give the entity that the best column points to by its plain reference.

        `所属分类` names the category.
        """
        if not columns or columns[0][1].quality < _LEAST_TABLE:
            return None

        link = columns[0][1]
        for edge in self._schema.facts[link.table].edges:
            entity = self._schema.facts[edge.parent]
            if edge.columns == (link.column,) and is_default(edge) and entity.is_entity:
                return Link("table", edge.parent, None, None, link.quality, link.spelling)

        return None

    # --------------------------------------------------------------------------
    # context

    def _context_within(self, link: Link, around: _Surroundings) -> float:
        """Give how much the context adds: most to the columns of a thing that is named itself."""
        most = _MOST_CONTEXT[link.kind]
        is_head = link.kind == "column" and link.quality >= _HEAD_WORD
        if is_head and self._mentioned.get(link.table, 0.0) >= _NAMED:
            return most + _OWN

        return min(self._context(link, around), most)

    def _context(self, link: Link, around: _Surroundings) -> float:
        score = 0.0
        if link.table in around.tables_beside:
            score += _BESIDE_TABLE
        if link.kind == "value" and (link.table, link.column) in around.columns_beside:
            score += _BESIDE_COLUMN

        is_view = self._schema.table(link.table).kind != "table"
        if is_view and link.table not in self._mentioned:
            score += _OF_VIEW

        score += self._leant(link.table, around)
        return score + self._near_mentioned.of(link.table, self._mentioned)

    def _leant(self, table: TableKey, around: _Surroundings) -> float:
        """Return the bonus of a table near the tables that other words name."""
        own = around.owners.get(table, 0.0)
        if own:
            return own

        share = _LEANT_TO_BESIDE_NAMED if self._mentioned else 1.0
        return share * around.proximity.of(table, around.owners)

    def _beside(self, index: int) -> tuple[set[TableKey], set[_ColumnKey]]:
        """Give the tables and columns named right before or after the word.

        Words that only connect are skipped.
        """
        tables: set[TableKey] = set()
        columns: set[_ColumnKey] = set()
        for mark in self._neighbours(index):
            least = mark.quality - _RIVAL_BESIDE
            for link in mark.links:
                if link.kind == "table" and link.quality >= least:
                    tables.add(link.table)
                elif link.kind == "column":
                    columns.add((link.table, link.column))

        return tables, columns

    def _neighbours(self, index: int) -> Iterable[Mark]:
        for step in (-1, 1):
            place = index + step
            while 0 <= place < len(self._marks) and _only_connects(self._marks[place]):
                place += step

            if 0 <= place < len(self._marks):
                yield self._marks[place]

    # --------------------------------------------------------------------------
    # words that are names and something else

    def _join_parted(self, nouns: list[Noun | None]) -> None:
        """Join a column's name that has a function inside it: `患者平均年龄` is 患者年龄."""
        for index in range(1, len(nouns) - 1):
            if not self._parts_name(nouns, index):
                continue

            before, after = self._marks[index - 1], self._marks[index + 1]
            whole = self._lexicon.find(before.text + after.text)
            columns = tuple(
                (link.quality, link)
                for link in whole
                if link.kind == "column" and link.quality >= _WHOLE_COLUMN
            )
            if columns:
                nouns[index - 1], nouns[index + 1] = None, Noun(columns=columns)

    def _parts_name(self, nouns: Sequence[Noun | None], index: int) -> bool:
        """Tell whether a function stands between two Chinese words that may be one name."""
        if not self._marks[index].means(*_FUNCTIONS) or nouns[index] is not None:
            return False
        if index > 1 and self._marks[index - 2].means("each", "by", "which"):
            return False
        if self._marks[index - 1].text.isascii():
            return False

        return nouns[index - 1] is not None and nouns[index + 1] is not None

    def _only_counts(self, nouns: Sequence[Noun | None], index: int) -> bool:
        """Tell whether a word that is also a column's name only counts or measures.

        `数量` counts the table before it, which has no such column; `kg` after a number is its
        unit.
        """
        noun = nouns[index]
        mark = self._marks[index]
        if noun is None:
            return False
        if mark.means("unit") and self._is_behind_number(index):
            return True  # "over 1200 kg", where a column is called payload_kg
        if mark.means("bucket") and not self._describes(noun, nouns, index):
            return True
        if mark.means(*_FUNCTIONS, "count") and self._aggregates(noun, nouns, index):
            return True
        if index == 0 or not mark.means("count"):
            return False

        return _counts_table(noun, nouns[index - 1])

    def _is_behind_number(self, index: int) -> bool:
        return index > 0 and self._marks[index - 1].number is not None

    def _aggregates(self, noun: Noun, nouns: Sequence[Noun | None], index: int) -> bool:
        """Tell whether an aggregate's word stands before what it aggregates."""
        after = self._next_noun(nouns, index)
        if noun.is_value or after is None or after.is_value:
            return False

        return self._is_measured(noun, after)

    def _describes(self, noun: Noun, nouns: Sequence[Noun | None], index: int) -> bool:
        """Tell whether a word such as `annual` is a stored value there.

        It stands right before its table or beside its column.
        """
        if not noun.values:
            return _is_whole_column(noun)

        links = [link for _, link in noun.values]
        columns = {(link.table, link.column) for link in links}
        tables = {link.table for link in links}
        after = self._next_noun(nouns, index)
        before = nouns[index - 1] if index else None
        beside = _columns_named(after) | _columns_named(before)
        if not beside.isdisjoint(columns):
            return True
        if after is None or after.table is None or not after.is_table:
            return False

        return after.table.table in tables

    def _next_noun(self, nouns: Sequence[Noun | None], index: int) -> Noun | None:
        """Return the thing that the next word names, past words that say nothing."""
        for place in range(index + 1, len(nouns)):
            if nouns[place] is not None or not self._marks[place].means("of", "noise"):
                return nouns[place]

        return None

    def _is_measured(self, noun: Noun, after: Noun) -> bool:
        """Tell whether an aggregate's word (`total`), though a column's name, has its figure behind
        it.
        """
        if after.is_table and after.table is not None:
            return all(link.table != after.table.table for _, link in noun.columns)

        measured = after.column
        if measured is None:
            return False

        column = self._schema.column(measured.table, measured.column or "")
        return self._schema.facts[measured.table].is_measure(column)


def _only_connects(mark: Mark) -> bool:
    return mark.means(*_PASSED) and not mark.links


def _columns_named(noun: Noun | None) -> set[_ColumnKey]:
    if noun is None:
        return set()

    return {(link.table, link.column) for _, link in noun.columns}


def _is_whole_column(noun: Noun) -> bool:
    """Tell whether the best column that the word names is meant by the whole of it."""
    if not noun.columns:
        return False

    _, best = noun.columns[0]
    return best.quality >= _WHOLE_COLUMN


def _counts_table(noun: Noun, before: Noun | None) -> bool:
    """Tell whether a word that counts follows a table that has no such column itself."""
    if before is None or before.table is None or not before.is_table:
        return False

    return not any(
        link.table == before.table.table and link.quality >= _WHOLE_NAME for _, link in noun.columns
    )
