"""Reads conditions, such as "above 5000", 为空, "in 2024", 微信和支付宝 or "without orders"."""

from rules.query.conditions import Filters
from rules.readers.absences import AbsenceReader
from rules.readers.patterns import PatternReader
from rules.readers.reading import Reading
from rules.readers.said_values import ValueReader
from rules.readers.spans import SpanReader
from rules.readers.thresholds import ThresholdReader


def read_filters(reading: Reading) -> Filters:
    """Reads every condition, and uses up its marks.

    The most specific forms come first, because the later ones would take parts of them.
    """
    found = Filters()
    for index in list(reading.having("deleted")):
        reading.use(index)
        found.with_deleted.update(reading.schema.facts)
    SpanReader(reading, found).read()
    absences = AbsenceReader(reading, found)
    absences.read()
    PatternReader(reading, found).read()
    ThresholdReader(reading, found).read()
    values = ValueReader(reading, found)
    values.read()
    absences.read_negated_nouns()
    absences.read_possessions()
    values.merge_alternatives()
    return found
