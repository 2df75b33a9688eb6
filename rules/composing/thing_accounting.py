"""Refuses statements about other things than those that the question asks for."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from common.meanings import TableKey
from knowledge.language.cutting import has_han
from knowledge.language.inflection import stem
from knowledge.language.spoken_names import english_words
from rules.composing.asked import Asked
from rules.query.query import Query, references, touched
from rules.query.refusals import unused_words
from rules.reading.words import ColumnIdentity, Word
from rules.words import WORDS
from rules.words.speech import is_participle, part_of_speech

_BELOW = frozenset(WORDS.both("questions.below"))
_THEIRS = frozenset(WORDS.both("questions.theirs"))
_CURRENCIES = frozenset(WORDS.both("questions.currencies"))
_CURRENCY = WORDS.found("columns.currency")
_STARTING = frozenset(WORDS.english.phrases("questions.starting"))
_WHOLE_VALUE = 0.8  # quality
_STEM = 5  # letters by which a verb is told that names a reference: supervised, supervisor_id
_MANNERS = ("adverb", "adjective")
_FIGURES = ("count", "sum", "avg", "share")
_NO_THINGS = ("person", "when")  # arguments of words that ask which


def refuse_other_things(asked: Asked, query: Query) -> None:
    """Refuse a query whose rows are not the things, or not all the things, that are asked for.

    Raises:
        Refusal: names the words.
    """
    _refuse_unshown_things(asked, query)
    _refuse_counts_of_values(asked, query)
    _refuse_passed_ranks(asked, query)
    _refuse_totals_of_each(asked, query)
    _refuse_rows_of_each(asked, query)
    _refuse_what_is_known(asked, query)
    _refuse_passed_roles(asked, query)
    _refuse_manners(asked, query)
    _refuse_events_as_states(asked, query)
    _refuse_passed_currencies(asked, query)
    _refuse_starts_as_bounds(asked, query)
    _refuse_counts_without_things(asked, query)
    _refuse_rows_in_place_of_roles(asked, query)
    _refuse_upper_rows_for_lower(asked, query)


def _refuse_unshown_things(asked: Asked, query: Query) -> None:
    """Refuse to show other things than those behind "which": `哪些律师没有填过工时`.

    There the lawyers were taken for a column of the cases that the hours belong to.
    """
    answering = answering_tables(query)
    shown = _shown(query)
    for after in asked.question.words:
        thing = after.link_as("tab")
        if thing is None or thing.table in answering or not _is_asked_for(asked, after):
            continue

        columns = after.noun.columns if after.noun is not None else ()
        named = {(link.table, link.column) for _, link in columns}
        has_names = bool(asked.question.facts(thing.table).display)
        is_listed = not asked.question.means(after.at - 1, "which")
        if (has_names or is_listed) and named.isdisjoint(shown):
            raise unused_words([after.mark.text])


def _is_asked_for(asked: Asked, thing: Word) -> bool:
    """Tell whether a thing stands behind "which", or before a word such as `有哪些`."""
    before = asked.question.word_at(thing.at - 1)
    if before is not None and before.mark.means("which") and before.mark.arg not in _NO_THINGS:
        return True

    after = asked.question.word_at(thing.at + 1)
    return after is not None and has_han(after.text) and after.mark.means("list")


def answering_tables(query: Query) -> set[TableKey]:
    """Return the tables whose rows the answer shows."""
    found = {dimension.table for dimension in query.dimensions}
    if not query.measures:
        found.add(query.base)
        found |= {column.table for column in query.columns}

    return found


def _shown(query: Query) -> set[ColumnIdentity]:
    found: set[ColumnIdentity] = {(column.table, column.column) for column in query.columns}
    found |= {(one.table, one.column) for one in query.dimensions}
    found |= {(measure.table, measure.column) for measure in query.measures}
    return found


def _refuse_counts_of_values(asked: Asked, query: Query) -> None:
    """Refuse to count rows of a value for the things behind it: "how many late pupils" were late.

    Their lessons are not counted.
    """
    counted = {measure.table for measure in query.measures}
    grouped = {dimension.table for dimension in query.dimensions}
    for word, value, after in zip(*(asked.question.words[at:] for at in range(3)), strict=False):
        thing = after.link_as("tab")
        said = value.link_as("val")
        if not word.mark.means("count") or not word.text.isascii():
            continue
        if thing is None or said is None or "tab" in value.senses:
            continue
        if said.table in counted and thing.table not in counted | grouped:
            raise unused_words([word.mark.text, after.mark.text])


def _refuse_passed_ranks(asked: Asked, query: Query) -> None:
    """Refuse to pass over words for those below of rows that have others of their kind below them.

    `诉讼部有哪些下级部门` does not ask for that department.
    """
    words = [word.mark.text for word in asked.question.words if word.text in _BELOW]
    edges = asked.question.facts(query.base).edges
    own = {edge.columns[0] for edge in edges if edge.parent == edge.child}
    if words and own and own.isdisjoint(_ways(query)):
        raise unused_words(words)


def _ways(query: Query) -> Iterator[str]:
    """Yield the referencing columns through which the query reaches other rows, or tests itself."""
    for reference in references((query.conditions, query.dimensions, query.related, query.either)):
        yield reference.via or str(reference.column)


def _refuse_totals_of_each(asked: Asked, query: Query) -> None:
    """Refuse one figure for that of each thing: "agents and the revenue of their customers"."""
    is_of_all = bool(query.measures) and not query.dimensions and not query.counts_rows
    if not is_of_all or any(measure.per is not None for measure in query.measures):
        return

    has_thing, joins = False, False
    for word in asked.question.words:
        joins = joins or (has_thing and word.mark.means("and"))
        if joins and word.text in _THEIRS:  # not "shipments that arrived after their due date"
            raise unused_words([word.mark.text])

        has_thing = has_thing or "tab" in word.senses or "val" in word.senses


def _refuse_rows_of_each(asked: Asked, query: Query) -> None:
    """Refuse one of two things for both: "doctors and their patients"."""
    answering = answering_tables(query) | {measure.table for measure in query.measures}
    for word in asked.question.words:
        after = asked.question.nearest(word.at + 1, 1, "of")
        if after is None or word.text not in _THEIRS:
            continue

        of_each = after.link_as("tab")
        joins = any(asked.question.means(at, "and") for at in (word.at, word.at - 1))
        if not joins or of_each is None:
            continue

        before = asked.question.words[: word.at]
        owners = [owner.link_as("tab") or owner.link_as("val") for owner in before]
        things = [of_each, *(owner for owner in owners if owner is not None)]
        if any(thing.table not in answering for thing in things):
            raise unused_words([word.mark.text, after.mark.text])


def _refuse_what_is_known(asked: Asked, query: Query) -> None:
    """Refuse to answer with the name that is given: "which unit does Oncology belong to"."""
    named = set()
    for condition in query.conditions:
        column = condition.column
        names = asked.question.facts(column.table).display
        if condition.operator == "=" and column.column in names:
            named.add(column)

    asks_which = asked.question.has("which")
    if asks_which and not query.measures and named and named.issuperset(query.columns):
        raise unused_words(asked.question.texts("which"))


def _refuse_passed_roles(asked: Asked, query: Query) -> None:
    """Refuse to pass over a verb by which rows refer to others of their kind: "supervised by Ann".

    Its name is that of the reference, supervisor_id, and nobody is asked for Ann.
    """
    edges = asked.question.facts(query.base).edges
    own = {edge.columns[0] for edge in edges if edge.parent == edge.child}
    if not own or not own.isdisjoint(_ways(query)):
        return

    roles = {word[:_STEM] for name in own for word in english_words(name) if len(word) >= _STEM}
    for word in asked.question.words:
        if word.noun is None and word.text[:_STEM] in roles:
            raise unused_words([word.mark.text])


def _refuse_manners(asked: Asked, query: Query) -> None:
    """Refuse how something was done for a value of other rows: "invoices paid *late*".

    Those are no invoices of which a refund was late, nor those for a late arrival.
    """
    above = asked.question.graph.above(query.base)
    named = asked.question.named_tables()
    for done, word in pairwise(asked.question.words):
        value = word.link_as("val")
        if value is None:
            continue

        is_near = value.table in above or value.table in named
        if is_near and value.quality >= _WHOLE_VALUE:
            continue
        if _is_done(done, above) and part_of_speech(word.text, "en") in _MANNERS:
            raise unused_words([word.mark.text])


def _refuse_events_as_states(asked: Asked, query: Query) -> None:
    """Refuse a state of events that nothing names where the word is their verb: "works restored".

    Those are all with a restoration, whatever came out of it.
    """
    named = asked.question.named_tables()
    restricted = {(one.table, one.column) for one in references(query.conditions)}
    restricted |= {(one.table, one.column) for one in references(query.related)}
    for word in asked.question.words:
        value = word.link_as("val")
        if value is None or not named or (value.table, value.column) not in restricted:
            continue

        stems = {name[:_STEM] for name in english_words(value.table[1]) if len(name) >= _STEM}
        is_verb = value.table not in named and word.text[:_STEM] in stems
        if is_verb or _is_verb_between(asked, word, value.table):
            raise unused_words([word.mark.text])


def _is_verb_between(asked: Asked, word: Word, table: TableKey) -> bool:
    """Tell whether a state is the verb of the thing before it: `每个展览展出多少件文物`."""
    before = asked.question.word_at(word.at - 1)
    thing = before.link_as("tab") if before is not None else None
    if before is None or thing is None or thing.table == table or not has_han(word.text):
        return False

    return word.text[0] == before.text[0] and word.mark.start == before.mark.end


def _refuse_passed_currencies(asked: Asked, query: Query) -> None:
    """Refuse amounts of all currencies for those in one: "revenue in pounds"."""
    said = [word.mark.text for word in asked.question.words if word.text in _CURRENCIES]
    restricted = {(one.table, one.column) for one in references(query.conditions)}
    tables = touched(query) | asked.question.graph.above(query.base).keys()
    for key in tables if said else ():
        for column in asked.question.schema.table(key).columns:
            is_currency = _CURRENCY.search(f"{column.name} {column.comment or ''}") is not None
            if is_currency and (key, column.name) not in restricted:
                raise unused_words(said)


def _refuse_starts_as_bounds(asked: Asked, query: Query) -> None:
    """Refuse "starting in 2024" for "since 2024" where things have a date at which they start."""
    facts = asked.question.facts(query.base)
    for word in asked.question.words:
        if word.text not in _STARTING or not word.mark.means("range"):
            continue

        start = stem(word.text.split()[0])
        if any(start in map(stem, english_words(name)) for name in facts.dates):
            raise unused_words([word.mark.text])


def _refuse_counts_without_things(asked: Asked, query: Query) -> None:
    """Refuse one number for that of each thing: "venues in Leeds with the number of matches"."""
    if not query.measures or query.dimensions or query.counts_rows:
        return

    measured = {measure.table for measure in query.measures}
    for count in asked.question.words:
        before = asked.question.nearest(count.at - 1, -1, "noise", "of")
        if not count.mark.means("count") or before is None or not before.mark.means("with", "and"):
            continue
        if any(asked.question.means(at, *_FIGURES) for at in range(before.at)):
            continue

        for word in asked.question.words[: before.at]:
            thing = word.link_as("tab")
            if thing is not None and thing.table not in measured:
                raise unused_words([word.mark.text])


def _refuse_rows_in_place_of_roles(asked: Asked, query: Query) -> None:
    """Refuse rows with their references for what these refer to: "which managers live in York".

    Those are no people whose managers live anywhere, nor people of York with their managers.
    """
    named = asked.question.named_tables()
    for column in asked.parts.columns:
        table = column.link.table
        if query.measures or column.role != "asked" or table in named:
            continue

        given = [one.column for one in query.conditions if one.operator == "="]
        names = asked.question.facts(table).display
        if not given or any(one.table != table or one.column in names for one in given):
            continue

        for edge in asked.question.facts(table).edges:
            is_thing = asked.question.facts(edge.parent).is_entity
            if edge.columns == (column.link.column,) and is_thing:
                raise unused_words([asked.question.words[column.at].mark.text])


def _refuse_upper_rows_for_lower(asked: Asked, query: Query) -> None:
    """Refuse whom a row refers to for those that refer to it: `陆青主管哪些编辑`."""
    upper = {one.via for one in query.columns if one.table == query.base}
    for role, which, thing in zip(*(asked.question.words[at:] for at in range(3)), strict=False):
        column, table = role.link_as("tcol"), thing.link_as("tab")
        if column is None or table is None or not which.mark.means("which"):
            continue
        if column.column in upper and column.table == table.table == query.base:
            raise unused_words([role.mark.text])


def _is_done(word: Word, tables: Mapping[TableKey, float]) -> bool:
    """Tell whether a participle names a state or a date of rows of the tables."""
    if not is_participle(word.text):
        return False

    links = (word.link_as("val"), word.link_as("dcol"))
    return any(link is not None and link.table in tables for link in links)
