"""The words of one catalogue: every name of every table, column and stored value, and what each may refer to."""

import re
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agent.skills.offline.atoms import key_of, words_of
from agent.skills.offline.joins import Graph
from agent.skills.offline.naming import column_names, table_names
from agent.skills.offline.schema import Schema, TableKey, is_birth_date, kind_of
from agent.skills.offline.stored_values import gender_names, labelled_values, negated_flags, value_names
from common.values import Catalog, Column, Table

MAX_PHRASE_ATOMS = 16
"""Longest phrase looked up, in atoms."""


@dataclass(frozen=True)
class Link:
    """One thing a phrase may refer to.

    Attributes:
        column: None for a table.
        value: the stored value, None for a table or column.
        quality: 0 to 1, how much of the thing's name the phrase is.
        spelling: the phrase as the catalogue spells it, to prefer the exact form over an inflected one.
        derived: `age` when the years since the column's date are meant.
    """

    kind: Literal["table", "column", "value"]
    table: TableKey
    column: str | None
    value: str | None
    quality: float
    spelling: str
    derived: str | None = None


class Lexicon:
    """Phrases of one catalogue. Build it through `lexicon_of`, which keeps it as long as its catalogue lives."""

    def __init__(self, catalog: Catalog) -> None:
        self.schema = Schema(catalog)
        self.graph = Graph(self.schema)
        self._links: dict[str, dict[tuple[str, TableKey, str | None, str | None], Link]] = {}
        for table in catalog.tables:
            self._add_table(table)
        self.names: tuple[str, ...] = tuple(self._spoken_names())

    def links(self, key: str, stem_key: str) -> tuple[Link, ...]:
        """What a phrase may refer to, best first; `key` is its exact form, `stem_key` the form without inflection."""
        found = self._links.get(stem_key)
        if not found:
            return ()
        inflected = [
            link if link.spelling == key else Link(**{**vars(link), "quality": link.quality - 0.03})
            for link in found.values()
        ]
        return tuple(sorted(inflected, key=lambda link: -link.quality))

    def find(self, phrase: str) -> tuple[Link, ...]:
        """What a whole phrase may refer to, best first."""
        return self.links(key_of(phrase), key_of(phrase, stems=True))

    def _add(self, phrase: str, link: Link) -> None:
        stem_key = key_of(phrase, stems=True)
        place = self._links.setdefault(stem_key, {})
        identity = (link.kind, link.table, link.column, link.value or link.derived)
        known = place.get(identity)
        if known is None or known.quality < link.quality:
            place[identity] = link

    def _add_table(self, table: Table) -> None:
        view_penalty = 0.0 if table.kind == "table" else 0.08
        for phrase, quality in table_names(table).items():
            # Part of a view's name is more likely a figure and a group: "revenue per service area".
            partial = 0.25 if view_penalty and quality < 0.97 else 0.0
            self._add(phrase, Link("table", table.key, None, None, quality - view_penalty - partial, phrase))
        for column in table.columns:
            for phrase, quality in column_names(table, column).items():
                # "revenue total" in a view's column is more likely a figure of the table below it, added up.
                summed = 0.45 if view_penalty and _AGGREGATED.search(phrase) else 0.0
                link = Link("column", table.key, column.name, None, quality - view_penalty - summed, phrase)
                self._add(phrase, link)
            self._add_age(table, column, view_penalty)
            self._add_measure_of_table(table, column, view_penalty)
            self._add_values(table, column, view_penalty)

    def _add_age(self, table: Table, column: Column, penalty: float) -> None:
        """A date of birth also says the age, where no column does."""
        if kind_of(column) not in ("date", "timestamp") or not is_birth_date(column):
            return
        for phrase in ("age", "ages", "年龄", "岁数"):
            self._add(phrase, Link("column", table.key, column.name, None, 0.75 - penalty, phrase, derived="age"))

    def _add_measure_of_table(self, table: Table, column: Column, penalty: float) -> None:
        """Names of a bare measure (`amount`, `total`): what its table counts, and money words when it records events.

        `daily_revenue.amount` is what people mean by "revenue", `orders.total_amount` what they mean by "sales".
        """
        facts = self.schema.facts[table.key]
        if facts.is_entity or not facts.is_measure(column) or key_of(column.name) not in _BARE_MEASURES:
            return
        for phrase, quality in table_names(table).items():
            if quality >= 0.5 and key_of(phrase.split(" ")[-1], stems=True) in _MASS_NOUNS:
                self._add(phrase, Link("column", table.key, column.name, None, quality * 0.95 - penalty, phrase))
        if facts.dates and column.name.lower() not in ("quantity", "qty", "count", "数量"):
            sells = any(key_of(word, stems=True) in _SELLING for word in words_of(table.name))
            for phrase in _MONEY_NAMES:
                self._add(
                    phrase, Link("column", table.key, column.name, None, (0.74 if sells else 0.7) - penalty, phrase)
                )

    def _add_values(self, table: Table, column: Column, penalty: float) -> None:
        found = [*labelled_values(column), *value_names(column), *gender_names(column)]
        if kind_of(column) == "boolean":
            found += negated_flags(column_names(table, column))
        for value, phrase, quality in found:
            self._add(phrase, Link("value", table.key, column.name, value, quality - penalty, key_of(phrase)))

    def _spoken_names(self) -> Iterator[str]:
        """Names to suggest when a word is unknown."""
        for places in self._links.values():
            for link in places.values():
                if link.quality >= 0.8 and link.kind != "value":
                    yield link.spelling
                    break


_BARE_MEASURES = frozenset("amount total value sum money count quantity qty 金额 数量 总额 数额 总金额".split()) | {
    "total amount", "grand total", "total price", "amount total", "net amount", "sales amount", "sale amount",
}  # fmt: skip
_MASS_NOUNS = frozenset(
    key_of(word, stems=True)
    for word in "revenue sales income turnover cost expense spending profit traffic consumption usage production output".split()
)
_SELLING = frozenset(
    key_of(word, stems=True) for word in "order sale invoice transaction bill receipt 订单 销售".split()
)
_MONEY_NAMES = (
    "revenue", "sales", "total sales", "sales amount", "turnover", "spent", "spend", "spending", "营业收入", "营收", "收入",
    "销售额", "营业额", "消费", "消费金额", "花费",
)  # fmt: skip
_AGGREGATED = re.compile("(合计|总额|总数|总量|汇总|平均|均值)$|^(total|sum|avg|average|count)\\b|\\b(total|sum|average|count)$")
_LEXICONS: dict[int, tuple["weakref.ref[Catalog]", Lexicon]] = {}


def lexicon_of(catalog: Catalog) -> Lexicon:
    """The lexicon of this very catalogue object, built on first use and dropped with it."""
    known = _LEXICONS.get(id(catalog))
    if known is not None and known[0]() is catalog:
        return known[1]
    lexicon = Lexicon(Catalog(catalog.tables, catalog.search_path))
    identity = id(catalog)
    _LEXICONS[identity] = (weakref.ref(catalog, lambda _: _LEXICONS.pop(identity, None)), lexicon)
    return lexicon
