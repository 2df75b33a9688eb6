"""Refuses figures that are not those of the question, and asks which of several is meant."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from common.meanings import TableKey
from knowledge.language.cutting import has_han
from knowledge.language.inflection import stem
from knowledge.language.spoken_names import (
    called,
    column_names,
    english_words,
    table_names,
)
from rules.composing.asked import Asked
from rules.linking.units import is_other_unit
from rules.query.query import Condition, Measure, Query, touched
from rules.query.refusals import ambiguous_column, missing_measure, unused_words
from rules.reading.implied import amount_of, amount_paid, kind_columns
from rules.reading.words import ColumnIdentity, Word
from rules.schema.links import Link, column_link
from rules.schema.table_facts import Facts
from rules.words import WORDS
from rules.words.speech import is_participle

_WHOLE_NAME = 0.9  # quality
_LIKE_NAME = 0.7  # quality below which a word is only like a column's name
_COUNTS = ("count", "count_distinct")
_SELLS = re.compile(WORDS.any_of("questions.sells"), re.IGNORECASE)
_QUANTITY = WORDS.chinese.pattern("columns.counted", end="$")
_NUMBER_OF_PEOPLE = WORDS.chinese.phrases("questions.number_of_people")
_NUMBER = WORDS.chinese.text("questions.number")
_TENTHS = WORDS.chinese.text("questions.tenths")
_TOTALS = WORDS.chinese.phrases("questions.totals")
_TOTAL_OF = WORDS.english.text("questions.total_of")
_KINDS_OF = frozenset(WORDS.english.phrases("questions.kinds_of"))
_COUNTS_MOST = WORDS.chinese.text("questions.counts_most")
_HAVE = frozenset(WORDS.both("questions.have"))


def refuse_unaccounted_figures(asked: Asked, query: Query) -> None:
    """Refuse a query whose figures are not all that the question asks for, and only that.

    Raises:
        Refusal: names the words, or asks what they mean.
    """
    _refuse_counted_amounts(asked, query)
    _refuse_counted_totals(asked, query)
    _refuse_unsaid_averages(asked, query)
    _refuse_other_units(asked, query)
    _refuse_counts_of_likeness(asked, query)
    _refuse_counts_left_out(asked, query)
    _refuse_figures_had(asked, query)
    _refuse_averages_had(asked, query)
    _refuse_counts_of_kinds(asked, query)
    _refuse_things_counted_beside(asked, query)
    _refuse_rows_counted_beside(asked, query)
    _refuse_numbers_of_unknown(asked)
    _refuse_things_sold(asked, query)
    _refuse_amounts_as_tables(asked, query)
    _refuse_largest_as_most(asked, query)
    _refuse_amounts_for_most(asked, query)
    _ask_whose_amount(asked, query)
    _refuse_quantities_as_rows(asked, query)
    _refuse_amounts_of_others(asked, query)
    _ask_which_amount(asked, query)
    _refuse_income_of_others(asked, query)
    _refuse_parts_of_longer_names(asked, query)
    _refuse_totals_of_columns(asked, query)
    _refuse_counts_of_units(asked, query)
    _refuse_events_for_people(asked, query)
    _refuse_rows_for_quantities(asked, query)
    _refuse_discounts_in_tenths(asked)
    _refuse_figures_called_as_tables(asked, query)


def _refuse_counted_amounts(asked: Asked, query: Query) -> None:
    """Refuse to count the rows of a table of which people ask how much there is: of stock.

    Raises:
        Refusal: asks which of its quantities is meant.
    """
    question = asked.question
    if question.says_records:
        return

    for measure in query.measures:
        facts = question.facts(measure.table)
        is_count = measure.function == "count" and measure.column is None
        if is_count and facts.keeps_amounts and any(map(facts.is_count, facts.measures)):
            raise missing_measure(called(facts.table), facts)


def _refuse_counted_totals(asked: Asked, query: Query) -> None:
    """Refuse to count rows with amounts for "the total of": it may be that of the amounts."""
    question = asked.question
    totals = [text for text in question.texts("sum") if text.lower().endswith(_TOTAL_OF)]
    if not totals or question.has("count"):
        return

    for measure in query.measures:
        is_count = measure.function == "count" and measure.column is None
        if is_count and amount_of(question, measure.table) is not None:
            raise unused_words(totals)


def _refuse_unsaid_averages(asked: Asked, query: Query) -> None:
    """Refuse to average rows of a table that nothing names, where no word says so.

    "the products and their price" is no average of the unit prices at which they were sold, and
    "how many orders have a discount" does not ask how high it is.
    """
    named = {table.link.table for table in asked.parts.tables}
    named |= {measure.table for measure in query.measures if measure.column is None}
    if not named or asked.says("avg") or asked.question.texts("avg"):
        return

    is_beside = len({measure.table for measure in query.measures}) > 1
    averages = [
        measure
        for measure in query.measures
        if measure.function == "avg" and measure.table not in named
    ]
    for word, link in _words_for(asked, averages, "mcol"):
        if is_beside or link.quality < _WHOLE_NAME:
            raise unused_words([word.text])


def _refuse_other_units(asked: Asked, query: Query) -> None:
    """Refuse a figure in another unit than its column's: minutes of what is in milliseconds."""
    for word, link in _words_for(asked, query.measures, "mcol"):
        if is_other_unit(word.text, asked.question.column_of(link)):
            raise unused_words([word.text])


def _refuse_counts_of_likeness(asked: Asked, query: Query) -> None:
    """Refuse to count the values of a column by a part of its name: units are no packages."""
    counts = [measure for measure in query.measures if measure.function == "count_distinct"]
    for word, link in _words_for(asked, counts, "tcol", "mcol"):
        if link.quality < _LIKE_NAME:
            raise unused_words([word.text])


def _refuse_counts_left_out(asked: Asked, query: Query) -> None:
    """Refuse figures without the number of things that is asked for beside them."""
    if not query.measures or any(measure.function in _COUNTS for measure in query.measures):
        return

    for word, after in pairwise(asked.question.words):
        is_number = word.mark.means("count") and word.mark.arg == ""
        if is_number and after.mark.is_unknown and after.mark.start == word.mark.end:
            raise unused_words([f"{word.text}{after.text}"])


def _refuse_figures_had(asked: Asked, query: Query) -> None:
    """Refuse a figure beside a count of what has it: "how many order lines have a discount"."""
    if not any(measure.function == "count" for measure in query.measures):
        return

    for word, _ in _words_for(asked, query.measures, "mcol"):
        before = asked.question.nearest(word.at - 1, -1, "noise")
        if before is not None and before.noun is None and before.text.lower() in _HAVE:
            raise unused_words([before.text, word.text])


def _refuse_averages_had(asked: Asked, query: Query) -> None:
    """Refuse the average of a column for rows that have it: "order lines with a discount"."""
    is_alone = not query.dimensions and not asked.says("avg") and not asked.question.has("avg")
    averages = [measure for measure in query.measures if measure.function == "avg"]
    if not is_alone or any(measure.per is not None for measure in averages):
        return

    for word, _ in _words_for(asked, averages, "mcol"):
        if asked.question.means(word.at - 1, "with"):
            raise unused_words([asked.question.words[word.at - 1].text, word.text])


def _refuse_counts_of_kinds(asked: Asked, query: Query) -> None:
    """Refuse to count rows for their kinds: "how many types of incidents"."""
    counted = [
        measure.table
        for measure in query.measures
        if measure.function == "count" and not measure.column
    ]
    for key in counted:
        if not kind_columns(asked.question, key):
            continue

        for word, after in pairwise(asked.question.words):
            table = after.link_as("tab")
            is_kind = word.noun is None and word.text in _KINDS_OF
            if is_kind and table is not None and table.table == key:
                raise unused_words([word.mark.text])


def _refuse_things_counted_beside(asked: Asked, query: Query) -> None:
    """Refuse groups of a thing with another's figure: "captains per grade and number of trips"."""
    measured = {measure.table for measure in query.measures}
    if not measured or not asked.parts.groups:
        return

    grouped = {dimension.table for dimension in query.dimensions if dimension.column is None}
    for table in asked.tables:
        is_beside = asked.question.means(table.at + 1, "each", "by", "and")
        if not is_beside or table.link.table in measured | grouped:
            continue
        if any(word.mark.means("and") for word in asked.question.words[table.at :]):
            raise unused_words([asked.question.words[table.at].mark.text])


def _refuse_rows_counted_beside(asked: Asked, query: Query) -> None:
    """Refuse a total for rows and a figure of theirs: `各仓库员工和工资` asks for both."""
    if not asked.parts.groups or any(measure.function in _COUNTS for measure in query.measures):
        return

    measured = {measure.table for measure in query.measures if measure.column is not None}
    for table in asked.tables:
        figure = asked.question.word_at(table.at + 2)
        if figure is None or not asked.question.means(table.at + 1, "and"):
            continue
        if table.link.table in measured and "mcol" in figure.senses:
            raise unused_words([asked.question.words[table.at].mark.text])


def _refuse_things_sold(asked: Asked, query: Query) -> None:
    """Refuse to count things for how many were sold: that is said where they were sold."""
    counted = [
        measure.table
        for measure in query.measures
        if measure.function == "count" and not measure.column
    ]
    verbs = [text for text in asked.question.texts("verb") if _SELLS.fullmatch(text)]
    if not verbs or not counted:
        return

    facts = asked.question.facts(counted[0])
    if not facts.is_entity:
        _refuse_lines_sold(asked, facts)
        return

    graph = asked.question.graph
    if not graph.below(counted[0]).keys() - counted:
        return
    if touched(query) <= graph.above(counted[0]).keys() or _is_object_of_sale(asked, counted[0]):
        raise unused_words(verbs)


def _refuse_lines_sold(asked: Asked, facts: Facts) -> None:
    """Refuse to count lines for what was sold in them: "how many adult tickets were sold"."""
    has_quantity = any(map(facts.is_count, facts.measures))
    if not has_quantity or asked.question.says_records:
        return

    for word in asked.question.words:
        is_verb = word.noun is None and word.mark.means("verb")
        if is_verb and _SELLS.fullmatch(word.text):
            raise unused_words([word.mark.text])


def _is_object_of_sale(asked: Asked, counted: TableKey) -> bool:
    """Tell whether "how many" stands between a verb and its object: `客户买了多少商品`."""
    for word in asked.question.words:
        table = word.link_as("tab")
        if table is None or table.table != counted:
            continue

        number = asked.question.nearest(word.at - 1, -1, "noise", "unit")
        verb = asked.question.word_at(number.at - 1) if number is not None else None
        is_number = number is not None and number.mark.means("count")
        if is_number and verb is not None and _SELLS.fullmatch(verb.text):
            return True

    return False


def _refuse_amounts_as_tables(asked: Asked, query: Query) -> None:
    """Refuse rows for the amount that was done: "meals ordered" are no meal orders."""
    for word in asked.question.words:
        table = word.link_as("tab")
        noun, _, done = word.text.rpartition(" ")
        if table is None or not noun or not is_participle(done):
            continue
        if table.table not in {measure.table for measure in query.measures}:
            continue

        for link in asked.question.lexicon.find(noun):
            is_own = link.kind == "column" and link.table == table.table
            if is_own and link.quality >= _WHOLE_NAME and asked.question.is_measure(link):
                raise unused_words([word.mark.text])


def _refuse_largest_as_most(asked: Asked, query: Query) -> None:
    """Refuse groups with the most rows for the largest row: "largest order: which channel"."""
    ranked = {one.measure for one in query.order if one.measure is not None}
    if not query.dimensions:
        return

    for ranking in asked.parts.rankings:
        is_count = ranking.figure is None or ranking.figure.link is None
        if not is_count or ranking.counts or ranking.is_order:
            continue

        after = asked.question.nearest(ranking.at + 1, 1, "noise")
        table = after.link_as("tab") if after is not None else None
        if table is not None and Measure("count", table.table) in ranked:
            raise unused_words([asked.question.words[ranking.at].mark.text])


def _refuse_amounts_for_most(asked: Asked, query: Query) -> None:
    """Refuse to rank by an amount where the number is said: `收款笔数最多`."""
    ranked = [one.measure for one in query.order if one.measure is not None]
    for unit, word in pairwise(asked.question.words):
        is_number = unit.mark.means("unit") and word.text.startswith(_COUNTS_MOST)
        if not is_number or not word.mark.means("super"):
            continue
        if any(measure.function not in _COUNTS for measure in ranked):
            raise unused_words([f"{unit.mark.text}{word.mark.text}"])


def _refuse_numbers_of_unknown(asked: Asked) -> None:
    """Refuse a quantity of something unknown: `投诉数量` is no quantity of what is in stock."""
    for word, after in pairwise(asked.question.words):
        is_quantity = after.mark.means("count") and _QUANTITY.search(after.text) is not None
        if is_quantity and word.mark.is_unknown and word.mark.end == after.mark.start:
            raise unused_words([f"{word.text}{after.text}"])


def _ask_whose_amount(asked: Asked, query: Query) -> None:
    """Ask which amount is meant where another table has the name that the word begins with.

    The amount of an order may be its total, and that of its lines.
    """
    for word, chosen in _words_for(asked, query.measures, "mcol"):
        for key in asked.question.graph.above(chosen.table):
            if key != chosen.table:
                _ask_among(asked, word, chosen, _amounts_called(asked, key, word.text))


def _amounts_called(asked: Asked, key: TableKey, text: str) -> list[Link]:
    """Return the measures of a table whose names end as the text does behind the table's name."""
    facts = asked.question.facts(key)
    found = []
    for name in table_names(facts.table):
        rest = text.removeprefix(name).strip()
        if not rest or rest == text:
            continue

        for column in facts.measures:
            if any(own.endswith(rest) for own in column_names(facts.table, column)):
                found.append(column_link(key, column.name))

    return list(dict.fromkeys(found))


def _refuse_quantities_as_rows(asked: Asked, query: Query) -> None:
    """Refuse a quantity in lines for the number of rows that they are part of: `订单数量`."""
    question = asked.question
    for word, chosen in _words_for(asked, query.measures, "mcol"):
        counted = _QUANTITY.search(word.text)
        if counted is None or not word.text[: counted.start()]:
            continue

        for link in question.lexicon.find(word.text[: counted.start()]):
            is_above = link.table in question.graph.above(chosen.table)
            if link.kind == "table" and link.table != chosen.table and is_above:
                raise unused_words([word.mark.text])


def _refuse_amounts_of_others(asked: Asked, query: Query) -> None:
    """Refuse an amount of rows that nothing names, by the end of its name, for that of others.

    `每笔订单的平均金额` is no average of refunds (`退款金额`) where orders have amounts themselves.
    """
    question = asked.question
    named = question.named_tables()
    for word, chosen in _words_for(asked, query.measures, "mcol"):
        if chosen.table in named or chosen.derived is not None or not _is_end(asked, chosen):
            continue

        for key in named:
            for other in question.graph.below(key):
                amount = amount_paid(question, other)
                if amount is not None and amount.table != chosen.table:
                    raise unused_words([word.mark.text])


def _is_end(asked: Asked, link: Link) -> bool:
    """Tell whether a word is but the end of its column's name."""
    table = asked.question.schema.table(link.table)
    names = column_names(table, asked.question.column_of(link))
    longer = [name for name in names if name.endswith(link.spelling) and name != link.spelling]
    return link.quality < _WHOLE_NAME and bool(longer)


def _ask_which_amount(asked: Asked, query: Query) -> None:
    """Ask which amount is meant where a word is the name of a table that keeps several."""
    for word, chosen in _words_for(asked, query.measures, "mcol"):
        if "tab" in word.senses:
            rivals = [*_own_quantity(asked, chosen), *_as_good(asked, word, chosen)]
            _ask_among(asked, word, chosen, list(dict.fromkeys(rivals)))


def _own_quantity(asked: Asked, chosen: Link) -> list[Link]:
    """Return the quantity of what the table keeps: "stock" is first what there is of it."""
    own = asked.question.facts(chosen.table).own_quantity
    if own is None or own.name == chosen.column:
        return []

    return [column_link(chosen.table, own.name)]


def _refuse_income_of_others(asked: Asked, query: Query) -> None:
    """Refuse "income" of a table that is named before it and has an amount of its own."""
    for word, chosen in _words_for(asked, query.measures, "mcol"):
        before = asked.question.nearest(word.at - 1, -1, "of")
        table = before.link_as("tab") if before is not None else None
        if before is None or table is None or chosen.quality >= _WHOLE_NAME:
            continue

        is_of_thing = asked.question.facts(table.table).is_entity
        is_of_other = table.table != chosen.table and not is_of_thing
        if is_of_other and amount_of(asked.question, table.table) is not None:
            raise unused_words([before.text, word.text])


def _refuse_parts_of_longer_names(asked: Asked, query: Query) -> None:
    """Refuse a figure by a word where all words of another's name are said: "units … on order".

    The quantity that was ordered is not `units_on_order`.
    """
    stems = set()
    for word in asked.question.words:
        stems |= {stem(one) for one in english_words(word.mark.text)}

    for word, chosen in _words_for(asked, query.measures, "mcol"):
        own = {stem(one) for one in english_words(word.mark.text)}
        names = _names_of_measures(asked, chosen) if chosen.quality < _WHOLE_NAME else ()
        for words in names:
            if len(words) > len(own) and own < words <= stems:
                raise unused_words([word.mark.text])


def _names_of_measures(asked: Asked, chosen: Link) -> Iterator[set[str]]:
    """Yield the words of the other measures of the table and of those above it."""
    for key in asked.question.graph.above(chosen.table):
        for column in asked.question.facts(key).measures:
            if (key, column.name) != (chosen.table, chosen.column):
                yield {stem(one) for one in english_words(column.name)}


def _refuse_totals_of_columns(asked: Asked, query: Query) -> None:
    """Refuse to count rows for a number that they hold: `总人数`, where a row is a group."""
    for names in _numbers_of_counted_rows(asked, query):
        for word in asked.question.words:
            is_total = word.mark.means("count") and word.text.startswith(_TOTALS)
            if is_total and any(has_han(name) and word.text.endswith(name) for name in names):
                raise unused_words([word.mark.text])


def _numbers_of_counted_rows(asked: Asked, query: Query) -> Iterator[list[str]]:
    """Yield the names of the numbers that rows hold, for each table whose rows are counted."""
    for measure in query.measures:
        if measure.function == "count" and measure.column is None:
            facts = asked.question.facts(measure.table)
            yield [name for one in facts.measures for name in column_names(facts.table, one)]


def _refuse_counts_of_units(asked: Asked, query: Query) -> None:
    """Refuse to count rows for what is measured: "how many kilograms" are no harvests."""
    if not any(measure.function in _COUNTS for measure in query.measures):
        return

    for count, unit in pairwise(asked.question.words):
        is_unit = unit.noun is None and unit.mark.means("unit") and unit.text.isascii()
        if is_unit and count.mark.means("count"):
            raise unused_words([count.mark.text, unit.mark.text])


def _refuse_events_for_people(asked: Asked, query: Query) -> None:
    """Refuse to count events for people, who may take part in several: `每月的考勤人数`."""
    question = asked.question
    counting_words = [text for text in question.texts("count") if text.endswith(_NUMBER_OF_PEOPLE)]
    for measure in query.measures if counting_words else ():
        is_count = measure.function == "count" and measure.column is None
        if not is_count or not question.facts(measure.table).is_event:
            continue

        parents = {edge.parent for edge in question.facts(measure.table).edges}
        if any(question.facts(parent).is_person for parent in parents):
            raise unused_words(counting_words)


def _refuse_rows_for_quantities(asked: Asked, query: Query) -> None:
    """Refuse to count rows for a number that they hold: `发了多少册` where each has a 册数."""
    for names in _numbers_of_counted_rows(asked, query):
        for count in asked.question.words:
            after = asked.question.word_at(count.at + 1)
            is_glued = (
                after is not None and after.noun is None and count.mark.end == after.mark.start
            )
            units = {count.text[-1], after.text if after is not None and is_glued else ""}
            if count.mark.means("count") and any(f"{unit}{_NUMBER}" in names for unit in units):
                raise unused_words([count.mark.text])


def _refuse_discounts_in_tenths(asked: Asked) -> None:
    """Refuse a number of tenths, as prices are reduced to: `6折` is not 6."""
    for number, unit in pairwise(asked.question.words):
        if number.mark.number is not None and unit.text.startswith(_TENTHS):
            raise unused_words([f"{number.mark.text}{unit.mark.text}"])


def _refuse_figures_called_as_tables(asked: Asked, query: Query) -> None:
    """Refuse the total of a figure by a word that names the table better, where rows are compared.

    "bottlings with more than 50 rejects" are rows, and no number of bottles.
    """
    has_conditions = bool(asked.parts.thresholds) or any(map(_is_compared, query.conditions))
    if query.dimensions or not has_conditions or asked.parts.figures or asked.says("how_many"):
        return

    for word, chosen in _words_for(asked, query.measures, "mcol"):
        table = word.link_as("tab")
        if table is not None and table.table == chosen.table and table.quality > chosen.quality:
            raise unused_words([word.mark.text])


def _is_compared(condition: Condition) -> bool:
    return condition.operator in (">", ">=", "<", "<=", "between")


def _as_good(asked: Asked, word: Word, chosen: Link) -> list[Link]:
    """Return other measures of the table that the word names at least as well."""
    if word.noun is None:
        return []

    found = []
    for _, link in word.noun.columns:
        is_other = link.table == chosen.table and link.column != chosen.column
        if is_other and link.quality >= chosen.quality and asked.question.is_measure(link):
            found.append(link)

    return found


def _ask_among(asked: Asked, word: Word, chosen: Link, rivals: Sequence[Link]) -> None:
    """Ask which column the word means, if there are rivals and the user has not chosen yet."""
    choices = [(link.table, str(link.column)) for link in (chosen, *rivals)]
    if rivals and asked.question.settled.among(choices) is None:
        raise ambiguous_column(word.mark.text, choices, asked.question.lexicon)


def _words_for(
    asked: Asked, measures: Iterable[Measure], *symbols: str
) -> Iterator[tuple[Word, Link]]:
    """Yield the words that name the column of a measure, in one of these senses."""
    measured: Collection[ColumnIdentity] = {
        (measure.table, measure.column) for measure in measures if measure.column is not None
    }
    for word in asked.question.words:
        for symbol in symbols:
            link = word.link_as(symbol)
            if link is not None and (link.table, link.column) in measured:
                yield word, link
