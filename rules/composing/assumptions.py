"""Says what was assumed where the question leaves a choice: which figure, date, groups, or value by a part of it.

The answer says it and names the other choices, so that users see a wrong guess and can correct it. A word that is only
a part of somebody's stored name, or has one as a part, is refused: it names somebody else.
"""

import itertools
from collections.abc import Iterator

from common.text import Text
from knowledge.naming import called, has_han
from rules.composing.asked import Asked
from rules.linking.longer_names import longer_name, longer_title, longer_word
from rules.query.query import Measure, Query, touched
from rules.query.refusals import enumerated, nobody_called, unknown_words
from rules.reading.words import ColumnIdentity, Word
from rules.schema.links import Link

_NAMED = 0.95  # a word of at least this quality is the column's whole name
_AS_GOOD = 0.1  # by which the quality of another column may be lower and it may still be meant
_MOST = 3  # other choices named
_WHOLE_VALUE = 0.8  # a word of at least this quality is the whole of a stored value


def assumptions(asked: Asked, query: Query) -> tuple[Text, ...]:
    """One sentence for each choice that was made; none where the question says which column or value it means."""
    return tuple(itertools.chain(
        _of_figures(asked, query), _of_dates(asked, query), _of_groups(asked, query), _of_filters(asked, query)
    ))  # fmt: skip


def _of_figures(asked: Asked, query: Query) -> Iterator[Text]:
    used: set[ColumnIdentity] = {(one.table, one.column) for one in query.measures if one.column is not None}
    used |= {(one.column.table, one.column.column) for one in query.order if one.column is not None}
    for chosen, rivals in filter(None, (_choice(asked, word, used) for word in asked.question.words)):
        names = enumerated([called(asked.question.column_of(link)) for link in rivals])
        taken = called(asked.question.column_of(chosen))
        yield Text(
            f"这里按“{taken.zh}”统计，另有：{names.zh}。", f'This is by "{taken.en}"; there is also: {names.en}.'
        )


def _choice(asked: Asked, word: Word, used: set[ColumnIdentity]) -> tuple[Link, list[Link]] | None:
    """The column that the word was taken for, and others that it may mean; None without others."""
    if word.noun is None or word.noun.is_value:
        return None
    named = (link for _, link in word.noun.columns if link.column is not None and link.derived is None)
    links = [link for link in named if asked.question.is_measure(link)]
    chosen = next((link for link in links if (link.table, link.column) in used), None)
    if chosen is None or chosen.quality >= _NAMED:
        return None
    rivals = [
        link for link in links if link.column != chosen.column and link.table == chosen.table
        and link.quality >= chosen.quality - _AS_GOOD
    ]  # fmt: skip
    return (chosen, rivals[:_MOST]) if rivals else None


def _of_dates(asked: Asked, query: Query) -> Iterator[Text]:
    conditions = [one.column for one in query.conditions if one.operator in ("during", "not during")]
    used = {(one.table, one.column) for one in conditions}
    used |= {(one.table, one.column) for one in query.dimensions if one.bucket is not None and one.column is not None}
    for table, column in sorted(used - set(_said_dates(asked)), key=str):
        facts = asked.question.facts(table)
        others = [facts.table.column(name) for name in facts.dates if name != column]
        names = [called(other) for other in others if other is not None and not facts.is_housekeeping(other)]
        taken = called(asked.question.schema.column(table, str(column)))
        if names:
            listed = enumerated(names[:_MOST])
            yield Text(
                f"时间按“{taken.zh}”计，另有：{listed.zh}。", f'Dated by "{taken.en}"; there is also: {listed.en}.'
            )


def _said_dates(asked: Asked) -> Iterator[ColumnIdentity]:
    for noun in (word.noun for word in asked.question.words):
        if noun is None or noun.column is None or noun.is_value:
            continue
        if noun.table is None or noun.column.quality >= noun.table.quality:  # "order date", not "orders"
            yield noun.column.table, noun.column.column


def _of_filters(asked: Asked, query: Query) -> Iterator[Text]:
    """The semantic file's filters on tables that take part, but those by columns that the question speaks of."""
    graph, spoken = asked.question.graph, touched(query)
    said = {(one.column.table, one.column.column) for one in query.conditions}
    said |= {(one.table, str(one.column)) for one in (*query.dimensions, *query.top_per)}
    for key in sorted(key for key in graph.above(query.base) if not spoken.isdisjoint(graph.above(key))):
        facts = asked.question.facts(key)
        is_told = facts.filter is not None and facts.filtered - {facts.deleted}
        if is_told and said.isdisjoint((key, name) for name in facts.filtered):
            name = called(facts.table)
            yield Text(
                f"默认只计入满足 {facts.filter} 的“{name.zh}”。",
                f'By default only those of "{name.en}" count that fulfil {facts.filter}.',
            )


def _of_groups(asked: Asked, query: Query) -> Iterator[Text]:
    """Says which groups an average is over, and what groups without rows have."""
    table = asked.question.schema.table
    for measure in query.measures:
        rows = called(table(measure.table))
        if query.all_of is not None:
            yield from _of_empty_groups(query, measure, called(table(query.all_of)), rows)
        elif measure.per is not None and measure.per.column is None:
            group = called(table(measure.per.table))
            yield Text(
                f"只计入有“{rows.zh}”记录的“{group.zh}”；如需全部计入，请加上“包括没有{rows.zh}的{group.zh}”。",
                f'Only those of "{group.en}" that have "{rows.en}" are counted; to count all, add '
                f'"including those without {rows.en}".',
            )


def _of_empty_groups(query: Query, measure: Measure, group: Text, rows: Text) -> Iterator[Text]:
    """Says what groups without rows have: 0 as a count or sum, nothing as an average."""
    if measure.function not in ("count", "count_distinct", "sum"):
        yield Text(
            f"没有“{rows.zh}”记录的“{group.zh}”没有这个数值。",
            f'Those of "{group.en}" without "{rows.en}" have no such figure.',
        )
    elif measure.per is not None or query.having:
        yield Text(
            f"没有“{rows.zh}”记录的“{group.zh}”按0计入。", f'Those of "{group.en}" without "{rows.en}" count as 0.'
        )


def notes_on_values(asked: Asked) -> tuple[Text, ...]:
    """What the answer says of words of which a part was taken for the whole of a stored value.

    Raises:
        Refusal: nothing has this name; the similar one is offered.
    """
    notes = []
    marks = [word.mark for word in asked.question.words]
    is_named = [word.noun is not None for word in asked.question.words]
    for place, link in asked.parts.said:
        is_whole, said = link.quality >= _WHOLE_VALUE, marks[place].text
        longer = longer_word(marks, place) or longer_title(marks, place, is_whole=is_whole)
        longer = longer or longer_name(marks, place, is_named, of_person=link.is_exact)
        if longer is not None:
            raise nobody_called(longer, [str(link.value)])
        if link.is_exact or not is_whole:
            _refuse_torn(asked, place)
        if link.is_exact and not is_whole:
            raise nobody_called(said, [str(link.value)])
        if not is_whole:
            notes.append(Text(f"“{said}”按“{link.value}”查询。", f'"{said}" was taken to mean "{link.value}".'))
    return tuple(notes)


def _refuse_torn(asked: Asked, place: int) -> None:
    """Refuses a part of a stored name after a character that may be a surname, such as 张: it is another person."""
    marks = [word.mark for word in asked.question.words]
    before = marks[place - 1] if place and marks[place].glued else None
    counted = place > 1 and marks[place - 2].number is not None
    if before is not None and before.means("unit") and not counted and has_han(before.text):
        raise unknown_words([before.text + marks[place].text], asked.question.lexicon)
