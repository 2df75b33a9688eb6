"""Every phrase that may stand for something in one catalogue, with what it stands for, or what it
asks for.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from common.meanings import ColumnMeaning, Metric
from common.values import Catalog, Column, Table
from knowledge.language.atoms import key_of, words_of
from knowledge.language.cutting import has_han
from knowledge.language.spoken_names import (
    bare_names,
    borrowed_names,
    column_names,
    comment_names,
    english_words,
    owned_names,
    owner_traits,
)
from knowledge.values.identity import identifies, names_people
from knowledge.values.stored_values import (
    gender_names,
    labelled_values,
    meant_values,
    negated_names,
    partial_names,
    value_names,
)
from rules.schema.links import METRIC, Link, column_link
from rules.schema.table_facts import Facts, flag_codes, is_birth_date, kind_of
from rules.words import WORDS
from rules.words.vocabulary import INTENTS, Intent
from sqltree.operator_expressions import expression

_EN, _ZH = WORDS.english, WORDS.chinese
_BARE_MEASURES = frozenset((*WORDS.both("figures.bare"), *WORDS.both("figures.bare_phrases")))
_MASS_NOUNS = frozenset(key_of(word, stems=True) for word in WORDS.both("figures.masses"))
# Above the rest of `traffic_date` without its date: asked for a mass, people want its figure
_MASS_QUALITY = 0.88
_PARTIAL, _PARTIAL_HAN = _EN.one_of("figures.parts"), _ZH.pattern("figures.parts")
_AMOUNT, _AMOUNT_HAN = (
    _EN.one_of("figures.amount_ends"),
    _ZH.pattern("figures.amount_ends", end="$"),
)
_COUNTED, _COUNT_HAN = frozenset(WORDS.both("figures.counted")), _ZH.text("figures.count")
_PRICE, _PRICE_HAN = _EN.text("figures.price"), _ZH.text("figures.price")
_SELLING = frozenset(key_of(word, stems=True) for word in WORDS.both("figures.selling"))
_READINGS = frozenset(WORDS.both("figures.readings"))
_MONEY_NAMES, _AGES = WORDS.both("figures.money"), WORDS.both("figures.ages")
# How well they name a figure, by whether its table records events, and whether its name says sales.
_MONEY_WEIGHTS = {(True, True): 0.74, (True, False): 0.72, (False, True): 0.7}
_AGGREGATED = re.compile(WORDS.any_of("figures.aggregated"))
_VIEW_PENALTY, _BORROWED_VIEW_PENALTY = 0.08, 0.28
_IN_MODULE = 0.95
_ARTICLE = _EN.text("questions.answers.article")


Phrases = Iterator[tuple[str, Link]]


def table_phrases(
    facts: Facts, names: Mapping[str, float], name_in_module: str | None, metrics: Iterable[Metric]
) -> Phrases:
    """Return phrases that mean the table, and those for its figures that follow from what it is
    about.

    Args:
        names: its `table_names`.
        name_in_module: see `Schema.name_in_module`.
    """
    table, penalty = facts.table, _penalty(facts.table)
    for phrase, quality in names.items():
        # Part of a view's name is more likely a figure and a group: "revenue per service area".
        partial = 0.25 if penalty and quality < 0.97 else 0.0
        yield phrase, _link(table, None, quality - penalty - partial, phrase)

    if name_in_module is not None:
        yield name_in_module, _link(table, None, _IN_MODULE - penalty, name_in_module)

    for column in _bare_measures(facts):
        yield from _bare_measure(facts, column, names)

    yield from _line_amount(facts)
    for metric in metrics:
        yield from _metric(metric, facts)


def borrowed_table_phrases(facts: Facts, names: Mapping[str, float]) -> Phrases:
    """Return phrases that in general language mean the table, or the mass that it is called after,
    and so its figure.
    """
    penalty = _penalty(facts.table, _BORROWED_VIEW_PENALTY)
    masses = ((column, dict(_mass_names(facts, column, names))) for column in _bare_measures(facts))
    for column, called in ((None, names), *masses):
        for phrase, quality in borrowed_names(called).items():
            yield phrase, _link(facts.table, column, quality - penalty, phrase)


def column_phrases(table: Table, column: Column) -> Phrases:
    """Return phrases from the names, comment and values of the column, but those that begin with
    the table's name.

    They are the same for equal columns of tables of the same `column_traits`.
    """
    penalty = _penalty(table)
    yield from _phrases_of_names(table, column, bare_names(table, column), penalty)
    is_dated = kind_of(column) in ("date", "timestamp")
    if is_dated and is_birth_date(column):  # says the age, where no column does
        for phrase in _AGES:
            yield phrase, _link(table, column, 0.75 - penalty, phrase, "age")

    yield from _phrases_of_values(table, column, penalty)


def owned_phrases(table: Table, column: Column) -> Phrases:
    """Return phrases that name the column by its table's name and its own."""
    return _phrases_of_names(table, column, owned_names(table, column), _penalty(table))


def column_traits(table: Table) -> Iterator[tuple[object, ...]]:
    """Yield for each column what `column_phrases` and `borrowed_column_phrases` need to know of
    the table.
    """
    for column, traits in zip(table.columns, owner_traits(table), strict=True):
        yield (table.kind == "table", _is_exact(table, column), *traits)


def _metric(metric: Metric, facts: Facts) -> Phrases:
    """Return the names of a metric; of a plain sum they mean its column, which can be averaged and
    compared as well.
    """
    computed = expression(metric.expression)
    is_own = metric.filter or metric.grain or metric.date_column not in (None, facts.date)
    is_sum = computed.call == "sum" and not is_own
    column, derived = (computed.columns[0], None) if is_sum else (metric.name, METRIC)
    for name in metric.names.all:
        yield name, Link("column", metric.table, column, None, 1.0, key_of(name), derived)


def borrowed_column_phrases(table: Table, column: Column) -> Phrases:
    """Return phrases that mean the column in general language only."""
    names = borrowed_names(column_names(table, column, with_owner=False))
    return _phrases_of_names(table, column, names, _penalty(table, _BORROWED_VIEW_PENALTY))


def _penalty(table: Table, of_view: float = _VIEW_PENALTY) -> float:
    return 0.0 if table.kind == "table" else of_view


def _phrases_of_names(
    table: Table, column: Column, names: dict[str, float], penalty: float
) -> Phrases:
    stored = {
        key_of(value, stems=True) for value in column.values
    }  # a comment that lists them gives no names
    for phrase, quality in names.items():
        if key_of(phrase, stems=True) in stored:
            continue

        # "revenue total" in a view's column is more likely a figure of the table below it, added
        # up.
        summed = 0.45 if penalty and _AGGREGATED.search(phrase) else 0.0
        yield phrase, _link(table, column, quality - penalty - summed, phrase)


def _link(
    table: Table, column: Column | None, quality: float, phrase: str, derived: str | None = None
) -> Link:
    if column is None:
        return Link("table", table.key, None, None, quality, phrase)

    return Link("column", table.key, column.name, None, quality, phrase, derived)


def _bare_measures(facts: Facts) -> Sequence[Column]:
    """Return the figures of a table that records events, which may be called after it."""
    return () if facts.is_entity else facts.measures


def _bare_measure(facts: Facts, column: Column, names: Mapping[str, float]) -> Phrases:
    """Return names of a bare measure (`amount`, `total`): what its table counts, and money words
    when it records events.

    `daily_revenue.amount` is what people mean by "revenue", `orders.total_amount` what they mean by
    "sales".
    """
    table = facts.table
    penalty = _penalty(table)
    for phrase, quality in _mass_names(facts, column, names):
        mass_quality = max(quality * 0.95, _MASS_QUALITY)
        yield phrase, _link(table, column, mass_quality - penalty, phrase)

    if not _is_amount(column):
        return

    sells = _is_of_sales(table)
    records_events = bool(facts.dates)
    is_reading = column.name.lower() in _READINGS
    may_be_money = sells or (records_events and not is_reading)
    if may_be_money and column.name.lower() not in _COUNTED:
        weight = _MONEY_WEIGHTS[records_events, sells]
        for phrase in _MONEY_NAMES:
            yield phrase, _link(table, column, weight - penalty, phrase)


def _mass_names(
    facts: Facts, column: Column, names: Mapping[str, float]
) -> Iterator[tuple[str, float]]:
    """Yield the names of a table called after a mass (`daily_revenue`), which its bare measure goes
    by as well.

    `daily_traffic.vehicle_count`: the only figure of a table named after a mass is that mass, money
    or not.
    """
    if not _is_amount(column) and len(facts.measures) > 1:
        return

    for phrase, quality in names.items():
        if quality >= 0.5 and key_of(phrase.split(" ")[-1], stems=True) in _MASS_NOUNS:
            yield phrase, quality


def _is_amount(column: Column) -> bool:
    """Tell whether the column is the amount of its event, not a part of it such as the discount."""
    words = english_words(column.name)
    names = [column.name] if has_han(column.name) else comment_names(column.comment)
    if _PARTIAL & {*words} or any(_PARTIAL_HAN.search(name) for name in names):
        return False

    return (
        key_of(column.name) in _BARE_MEASURES
        or bool(_AMOUNT & {*words[-1:]})
        or any(_AMOUNT_HAN.search(name) for name in names[:1])
    )


def _is_of_sales(table: Table) -> bool:
    """Tell whether the table's name says that something is sold."""
    return any(key_of(word, stems=True) in _SELLING for word in words_of(table.name))


def _line_amount(facts: Facts) -> Phrases:
    """Yield the money of an order line that stores only price and quantity: their product."""
    if not facts.edges or facts.is_entity:
        return

    prices = list(filter(_is_price, facts.measures))
    counts = list(filter(_is_quantity, facts.measures))
    if len(prices) != 1 or len(counts) != 1:
        return

    (price,) = prices
    (count,) = counts
    for column in facts.measures:
        is_other = column not in (price, count)
        if is_other and _is_amount(column):
            return

    quality = 0.71 - _penalty(facts.table)
    for phrase in _MONEY_NAMES:
        yield phrase, _link(facts.table, price, quality, phrase, f"times:{count.name}")


def _is_price(column: Column) -> bool:
    return _PRICE in english_words(column.name) or _PRICE_HAN in _texts(column)


def _is_quantity(column: Column) -> bool:
    if not _COUNTED.isdisjoint(english_words(column.name)):
        return True

    return _COUNT_HAN in _texts(column)


def _texts(column: Column) -> str:
    return f"{column.name} {column.comment or ''}"


def _phrases_of_values(table: Table, column: Column, penalty: float) -> Phrases:
    value_phrases = [
        *labelled_values(column),
        *value_names(column),
        *gender_names(column),
        *partial_names(column),
    ]
    if (absent := _undone_value(column)) is not None:
        value_phrases += negated_names(bare_names(table, column), absent)

    is_exact = _is_exact(table, column)
    for value, phrase, _ in meant_values(column):
        yield phrase, Link("value", table.key, column.name, value, 1.0 - penalty, key_of(phrase))

    for value, phrase, quality in value_phrases:
        yield (
            phrase,
            Link(
                "value",
                table.key,
                column.name,
                value,
                quality - penalty,
                key_of(phrase),
                is_exact=is_exact,
            ),
        )


def _is_exact(table: Table, column: Column) -> bool:
    """Tell whether the column's values are names of people or identifiers.

    No other word is taken for one of these.
    """
    return bool(column.values) and (names_people(table, column) or identifies(table, column))


def _undone_value(column: Column) -> str | None:
    """Return what a column stores where its name does not hold: `false`, the code of no, or NULL in
    a date.
    """
    kind = kind_of(column)
    codes = flag_codes(column)
    if codes is not None:
        return codes[1]

    if kind == "boolean":
        return "false"

    if kind in ("date", "timestamp") and column.nullable:
        return "null"

    return None


def said_words(
    catalog: Catalog, names: Container[str]
) -> tuple[Mapping[str, Intent], Mapping[str, tuple[Link, ...]]]:
    """Return intents by comparison key (of verbs, without inflection), and the figures that the
    adjectives are about.

    An adjective's intent is `super` with the direction and the adjective's key as its argument; a
    unit that means nothing else, and is none of the `names` without inflection, is a measure word.
    """
    intents: dict[str, Intent] = {}
    figures: dict[str, tuple[Link, ...]] = {}
    for meaning, link in _figures(catalog):
        for sign, words in (("+", meaning.most), ("-", meaning.least)):
            for key in map(key_of, words.all):
                intents[key] = intents[f"{_ARTICLE} {key}"] = Intent("super", sign + key)
                figures[key] = (*figures.get(key, ()), link)

        for unit in (meaning.unit.zh, meaning.unit.en) if meaning.unit is not None else ():
            if key_of(unit) not in INTENTS and key_of(unit, stems=True) not in names:
                intents.setdefault(key_of(unit), Intent("unit"))

    for table in catalog.tables:
        for verb in table.meaning.verbs.all if table.meaning is not None else ():
            intents.setdefault(key_of(verb, stems=True), Intent("verb"))

    return intents, figures


def _figures(catalog: Catalog) -> Iterator[tuple[ColumnMeaning | Metric, Link]]:
    for table in catalog.tables:
        for column in table.columns:
            if column.meaning is not None:
                yield column.meaning, column_link(table.key, column.name)

    for metric in catalog.metrics:
        yield metric, Link("column", metric.table, metric.name, None, 1.0, metric.name, METRIC)
