"""Words of the semantic file that ask for something, beside those of the two languages."""

from collections.abc import Container, Iterator, Mapping

from common.meanings import ColumnMeaning, Metric
from common.values import Catalog
from knowledge.atoms import key_of
from rules.schema.links import METRIC, Link, column_link
from rules.words import WORDS
from rules.words.vocabulary import INTENTS, Intent

_ARTICLE = WORDS.english.text("questions.answers.article")


def said_words(catalog: Catalog, names: Container[str]) -> tuple[Mapping[str, Intent], Mapping[str, tuple[Link, ...]]]:
    """Intents by comparison key (of verbs, without inflection), and the figures that the adjectives are about.

    An adjective's intent is `super` with the direction and the adjective's key as its argument; a unit that means
    nothing else, and is none of the `names` without inflection, is a measure word.
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
