"""Sentences on what was assumed where the question leaves a choice: of a figure, a date, groups, or
a value that it names in part.

The answer names the other choices as well, so that users see a wrong guess and can correct it. A
word that is only a part of somebody's stored name, or has one as a part, is refused, because it
names somebody else.
"""

from collections.abc import Iterable, Iterator

from common.meanings import TableKey
from common.text import Text
from knowledge.language.cutting import has_han
from knowledge.language.spoken_names import called
from rules.composing.asked import Asked
from rules.linking.longer_names import longer_name, longer_title, longer_word
from rules.linking.mark import Noun
from rules.query.query import Measure, Query, touched
from rules.query.refusals import enumerated, nobody_called, unknown_words, unused_words
from rules.reading.words import ColumnIdentity, Word
from rules.schema.links import Link
from rules.words.speech import part_of_speech

_NAMED = 0.95  # a word of at least this quality is the column's whole name
_AS_GOOD = 0.1  # by which the quality of another column may be lower and it may still be meant
_MOST = 3  # other choices named
_NO_VALUES = ("preposition", "adverb", "particle", "decisive")
_WHOLE_VALUE = 0.8  # a word of at least this quality is the whole of a stored value


def assumptions(asked: Asked, query: Query) -> tuple[Text, ...]:
    """Return a sentence for each choice that the rules made for the user.

    None where the question says which column or value it means.
    """
    return (
        *_of_figures(asked, query),
        *_of_discounts(asked, query),
        *_of_empty_amounts(asked, query),
        *_of_dates(asked, query),
        *_of_groups(asked, query),
        *_of_filters(asked, query),
    )


def _of_figures(asked: Asked, query: Query) -> Iterator[Text]:
    used: set[ColumnIdentity] = set()
    used |= {
        (measure.table, measure.column) for measure in query.measures if measure.column is not None
    }
    used |= {(one.column.table, one.column.column) for one in query.order if one.column is not None}
    for word in asked.question.words:
        choice = _choice(asked, word, used)
        if choice is None:
            continue

        chosen, rivals = choice
        names = enumerated([called(asked.question.column_of(link)) for link in rivals])
        assumed = called(asked.question.column_of(chosen))
        yield Text(
            f"这里按“{assumed.zh}”统计，另有：{names.zh}。",
            f'This is by "{assumed.en}"; there is also: {names.en}.',
        )


def _of_discounts(asked: Asked, query: Query) -> Iterator[Text]:
    """Yield whether an amount that is worked out of price and quantity is less discounts."""
    for measure in query.measures:
        discounts = asked.question.facts(measure.table).discounts
        if measure.times is None or not discounts:
            continue

        names = enumerated(map(called, discounts))
        if measure.less is not None:
            yield Text(
                f"已按“{names.zh}”（占价格的比例）扣减。",
                f'Reduced by "{names.en}", taken as a share of the price.',
            )
        else:
            yield Text(f"未扣减“{names.zh}”。", f'Not reduced by "{names.en}".')


def _of_empty_amounts(asked: Asked, query: Query) -> Iterator[Text]:
    """Yield that amounts of 0 are not among those that are missing: "no refund" may mean both."""
    for condition in query.conditions:
        column = condition.column
        is_amount = asked.question.facts(column.table).is_measure
        if condition.operator == "null" and is_amount(
            asked.question.schema.column(column.table, column.column)
        ):
            name = called(asked.question.schema.column(column.table, column.column))
            yield Text(
                f"只查“{name.zh}”为空的，为0的不算在内。",
                f'Only those where "{name.en}" is empty; 0 is not.',
            )


def _choice(asked: Asked, word: Word, used: set[ColumnIdentity]) -> tuple[Link, list[Link]] | None:
    """Return the column for which the word was taken, and others that it may mean.

    None where it can mean no other.
    """
    if word.noun is None or word.noun.is_value:
        return None

    links = _measures_named(asked, word.noun)
    used_links = [link for link in links if (link.table, link.column) in used]
    if not used_links:
        return None

    chosen = used_links[0]
    rivals = _rivals(chosen, links)
    if chosen.quality >= _NAMED or not rivals:
        return None

    return chosen, rivals[:_MOST]


def _rivals(chosen: Link, links: Iterable[Link]) -> list[Link]:
    """Return the links to other columns of the table that are about as good."""
    least = chosen.quality - _AS_GOOD
    rivals = []
    for link in links:
        is_other = link.table == chosen.table and link.column != chosen.column
        if is_other and link.quality >= least:
            rivals.append(link)

    return rivals


def _measures_named(asked: Asked, noun: Noun) -> list[Link]:
    """Return the stored measures that a word may name, the likeliest first."""
    found = []
    for _, link in noun.columns:
        is_stored = link.column is not None and link.derived is None
        if is_stored and asked.question.is_measure(link):
            found.append(link)

    return found


def _of_dates(asked: Asked, query: Query) -> Iterator[Text]:
    unsaid = _used_dates(query) - set(_said_dates(asked))
    for table, column in sorted(unsaid, key=str):
        names = _other_dates(asked, table, str(column))
        if not names:
            continue

        assumed = called(asked.question.schema.column(table, str(column)))
        listed = enumerated(names[:_MOST])
        yield Text(
            f"时间按“{assumed.zh}”计，另有：{listed.zh}。",
            f'Dated by "{assumed.en}"; there is also: {listed.en}.',
        )


def _used_dates(query: Query) -> set[ColumnIdentity]:
    """Return the dates by which the query restricts or groups rows."""
    found: set[ColumnIdentity] = set()
    for condition in query.conditions:
        if condition.operator in ("during", "not during"):
            found.add((condition.column.table, condition.column.column))

    for dimension in query.dimensions:
        if dimension.bucket is not None and dimension.column is not None:
            found.add((dimension.table, dimension.column))

    return found


def _other_dates(asked: Asked, table: TableKey, column: str) -> list[Text]:
    facts = asked.question.facts(table)
    found = []
    for name in facts.dates:
        other = facts.table.column(name) if name != column else None
        if other is not None and not facts.is_housekeeping(other):
            found.append(called(other))

    return found


def _said_dates(asked: Asked) -> Iterator[ColumnIdentity]:
    """Yield the columns that the question names: "order date" does, "orders" does not."""
    for word in asked.question.words:
        noun = word.noun
        if noun is None or noun.is_value:
            continue

        table, column = noun.table, noun.column
        if column is None:
            continue
        if table is None or column.quality >= table.quality:
            yield column.table, column.column


def _of_filters(asked: Asked, query: Query) -> Iterator[Text]:
    """Yield a sentence on each filter of the semantic file that the question does not mention."""
    graph = asked.question.graph
    spoken = touched(query)
    columns = {(condition.column.table, condition.column.column) for condition in query.conditions}
    columns |= {
        (dimension.table, str(dimension.column))
        for dimension in (*query.dimensions, *query.top_per)
    }
    for key in sorted(graph.above(query.base)):
        facts = asked.question.facts(key)
        if facts.filter is None or spoken.isdisjoint(graph.above(key)):
            continue

        is_only_deletion = not facts.filtered - {facts.deleted}
        is_said = any((key, name) in columns for name in facts.filtered)
        if is_only_deletion or is_said:
            continue

        name = called(facts.table)
        yield Text(
            f"默认只计入满足 {facts.filter} 的“{name.zh}”。",
            f'By default only those of "{name.en}" count that fulfil {facts.filter}.',
        )


def _of_groups(asked: Asked, query: Query) -> Iterator[Text]:
    """Yield which groups an average is over, and which figure groups without rows have."""
    table = asked.question.schema.table
    for measure in query.measures:
        rows = called(table(measure.table))
        if query.all_of is not None:
            yield from _of_empty_groups(query, measure, called(table(query.all_of)), rows)
        elif measure.per is not None and measure.per.column is None:
            group = called(table(measure.per.table))
            yield Text(
                f"只计入有“{rows.zh}”记录的“{group.zh}”；"
                f"如需全部计入，请加上“包括没有{rows.zh}的{group.zh}”。",
                f'Only those of "{group.en}" that have "{rows.en}" are counted; to count all, add '
                f'"including those without {rows.en}".',
            )


def _of_empty_groups(query: Query, measure: Measure, group: Text, rows: Text) -> Iterator[Text]:
    """Yield the figure that groups without rows have: 0 as a count or sum, none as an average."""
    if measure.function not in ("count", "count_distinct", "sum"):
        yield Text(
            f"没有“{rows.zh}”记录的“{group.zh}”没有这个数值。",
            f'Those of "{group.en}" without "{rows.en}" have no such figure.',
        )
    elif measure.per is not None or query.having:
        yield Text(
            f"没有“{rows.zh}”记录的“{group.zh}”按0计入。",
            f'Those of "{group.en}" without "{rows.en}" count as 0.',
        )


def notes_on_values(asked: Asked) -> tuple[Text, ...]:
    """Return a sentence on each word that is only a part of the stored value it was taken for.

    Raises:
        Refusal: nothing has this name; the similar one is offered.
    """
    notes = []
    for place, link in asked.parts.said:
        word = asked.question.words[place].mark.text
        value = str(link.value)
        is_whole = link.quality >= _WHOLE_VALUE
        longer = _longer_name(asked, place, link, is_whole=is_whole)
        if longer is not None:
            raise nobody_called(longer, [value])
        if link.is_exact or not is_whole:
            _refuse_part_of_name(asked, place)
        if is_whole:
            continue
        if word.isascii() and part_of_speech(word.lower(), "en") in _NO_VALUES:
            raise unused_words([word])  # "run out" is not "sold out"
        if link.is_exact:
            raise nobody_called(word, [value])

        note = Text(f"“{word}”按“{value}”查询。", f'"{word}" was taken to mean "{value}".')
        notes.append(note)

    return tuple(notes)


def _longer_name(asked: Asked, place: int, link: Link, *, is_whole: bool) -> str | None:
    """Return the longer name of which a word is a part in the question."""
    words = asked.question.words
    marks = [word.mark for word in words]
    found = longer_word(marks, place) or longer_title(marks, place, is_whole=is_whole)
    if found:
        return found

    is_named = [word.noun is not None for word in words]
    return longer_name(marks, place, is_named, of_person=link.is_exact)


def _refuse_part_of_name(asked: Asked, place: int) -> None:
    """Refuse a part of a stored name behind a character that may be a surname, such as 张.

    The question means another person then.
    """
    mark = asked.question.words[place].mark
    before = asked.question.word_at(place - 1)
    if before is None or not mark.glued:
        return

    counted = asked.question.word_at(place - 2)
    is_unit = counted is not None and counted.mark.number is not None
    may_be_surname = before.mark.means("unit") and has_han(before.mark.text)
    if may_be_surname and not is_unit:
        raise unknown_words([before.mark.text + mark.text], asked.question.lexicon)
