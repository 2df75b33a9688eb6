"""The table of patterns. A row has the pattern, the cost of using it, and the function that makes
parts of a match.

`matching` explains the language of patterns. Chinese and English share a pattern wherever their
order of words allows it.
"""

from collections.abc import Iterable, Iterator, Mapping

from rules.reading import (
    absences,
    comparing,
    counting,
    grouping,
    naming,
    periods,
    ranking,
    value_conditions,
)
from rules.reading.matching import Make, Patterns, PhrasePattern, elements
from rules.reading.parts import Parts

PARTS: Mapping[str, tuple[str, ...]] = {
    "compared": (
        "not? cmp num", "num cmp", "between num to|and|'to' num between_end?",
        "from? num to|'to' num between_end?", "num and|to num between_end",
        "cmp:=? from|'in' num to|and|'to' num between_end",
    ),
    "when": (
        "dates", "range|cmp|from dates", "dates range|'前'|'后'|'起'|'前的'",
        "from dates range|'起'", "not dates", "between dates between_end?", "dates between_end",
        "from dates range:now",
    ),
    "agg": ("sum|avg|max|min|median|stddev",),
    "aggs": ("{agg}", "num percentile", "{agg} and? {agg}", "{agg} and? {agg} and? {agg}"),
    "group": ("tab|tcol|flag|dcol|date_part|bucket|calendar_part",),
    "figure": (
        "mcol", "sum|avg|max|min|median mcol", "mcol sum|avg|median",
        "tab count?", "sum? count sum? tab", "dcol count?", "count mcol", "vals",
    ),
    "most": (
        "super", "super num", "num super", "top? super num", "super top num", "top num super",
        "top super",
    ),
    "unit": ("date_part|calendar_part|'weekdays'",),
    "column": ("tcol|mcol|dcol|flag",),
}  # fmt: skip

FLAGS = ("or", "trend", "compare", "distinct", "which:person", "which:when")
TABLE: tuple[tuple[str, float, Make], ...] = (
    # values
    ("by|named|cmp:=|cmp:!=? not? from|with? vals except_end?", 0.5, value_conditions.values),
    (
        "not? tcol|flag|mcol|dcol not|cmp:=|cmp:!=? not? vals except_end?", 0.4,
        value_conditions.labelled_values,
    ),
    ("not? vals tcol|flag", 0.4, value_conditions.labelled_values),
    ("tab named? vals", 0.75, value_conditions.values_of_table),
    ("vals '下属'|'下属的'|'下级'|'下辖'|'旗下' >tab", 0.4, value_conditions.below_value),
    ("not? with? flag", 0.5, value_conditions.flag),
    ("like vals", 0.6, value_conditions.possessed),
    ("count vals|flag", 0.6, counting.count_values),
    ("not? dcol|tcol|mcol", 0.5, value_conditions.deletion),
    ("deleted:with", 0.2, value_conditions.with_deleted),
    ("like:contains not? flag|vals", 0.1, value_conditions.included),
    # identity and text
    ("tab cmp:=? num|lit", 0.7, value_conditions.identity),
    ("tcol|mcol cmp:=? num", 0.6, value_conditions.identity),
    ("tcol cmp:=? lit", 0.5, value_conditions.identity),
    ("tcol|tab? not? like lit|unk|num|val", 0.4, value_conditions.text),
    ("tcol|tab? by? lit|unk|num|val like:prefix|like:suffix tcol|tab?", 0.3, value_conditions.text),
    ("tab? named lit|unk", 0.4, value_conditions.text),
    # what is missing
    ("{column} cmp:=? not? null|notnull", 0.4, absences.null),
    ("not? null|notnull {column}", 0.4, absences.null),
    ("not with? tcol|mcol|dcol", 0.6, absences.lacking),
    ("not with? verb? vals? tab vals?", 0.5, absences.without),
    ("not verb inclusion?", 0.8, absences.never_done),
    ("with tcol|mcol|dcol of", 0.7, absences.having),
    ("with tcol|mcol|dcol|tab", 0.6, absences.having_one),
    ("dcol of? >tab", 0.55, absences.done),
    ("<tab dcol", 0.58, absences.done),
    ("with both? vals tab and vals tab", 0.3, absences.having_each),
    # comparisons
    ("{agg}? mcol {agg}? {compared}", 0.4, comparing.threshold),
    ("tab sum? count count? cmp:=? {compared}", 0.4, comparing.threshold),
    ("count tab {compared}", 0.4, comparing.threshold),
    ("tab {compared}", 0.6, comparing.threshold_of_table),
    ("with? {compared} tab", 0.4, comparing.threshold),
    ("with? {compared} mcol", 0.5, comparing.threshold),
    ("sum? {compared}", 0.9, comparing.threshold),
    ("with? num mcol", 0.7, value_conditions.identity),
    ("mcol|tab? count? {compared} and {compared} tab?", 0.3, comparing.two_thresholds),
    ("mcol above_average|below_average mcol?", 0.3, comparing.average),
    ("above_average|below_average mcol", 0.4, comparing.average),
    ("dcol cmp num date_part", 0.3, comparing.duration),
    ("mcol|dcol not? cmp|range:after|range:before mcol|dcol", 0.4, comparing.columns_compared),
    # periods
    ("dcol? not? from? calendar", 0.4, periods.weekday),
    ("'weekday' >mcol|tab|count|calendar", 0.4, periods.workdays),
    ("{when}", 0.4, periods.span),
    ("date_part:week of dates", 0.2, periods.week_of),
    ("dcol cmp:=|with? {when}", 0.1, periods.span),
    ("which dcol {when}", 0.3, periods.asked_span),
    ("{when} dcol", 0.35, periods.span),
    ("{when} dcol and dcol", 0.4, periods.span),
    # figures
    ("sum? count distinct|sum? tab", 0.45, counting.count),
    ("tab sum? count", 0.45, counting.count),
    ("tab and tab count", 0.5, counting.count),
    ("count tab and tab", 0.5, counting.count),
    ("count distinct? tcol|dcol|mcol", 0.6, counting.count_column),
    ("distinct? tcol|dcol|mcol count", 0.6, counting.count_column),
    ("count", 0.9, counting.asked_number),
    ("sum", 0.8, counting.asked_total),
    ("avg", 0.8, Parts(flags=("avg",))),
    ("{aggs} mcol|dcol", 0.4, counting.aggregate),
    ("mcol {aggs}", 0.4, counting.aggregate),
    ("{agg} mcol and mcol", 0.5, counting.aggregate),
    ("{agg} tab mcol", 0.4, counting.owned_aggregate),
    ("tab {agg} mcol", 0.4, counting.owned_aggregate),
    ("tab mcol {agg}", 0.4, counting.owned_aggregate),
    ("sum tab", 0.7, counting.total_rows),
    ("tab sum", 0.7, counting.total_asked),
    ("tab|vals count", 0.4, counting.amount),
    ("count tab|vals", 0.4, counting.amount),
    ("count noise:rows? of? tab|mcol noise:rows?", 0.3, counting.count_rows),
    ("tab|mcol noise:rows? count", 0.35, counting.count_rows),
    ("avg_per mcol", 0.4, counting.averaged_per_unit),
    ("mcol avg_per", 0.4, counting.averaged_per_unit),
    ("avg bucket mcol", 0.4, counting.averaged_per_unit),
    ("per_entity tab?", 0.4, counting.per_entity),
    ("mcol", 0.5, counting.measure),
    ("mcol cmp:=? count", 0.5, counting.measure),
    ("tab mcol", 0.6, counting.owned_measure),
    ("mcol|tab count? share", 0.5, counting.share),
    ("share mcol|tab?", 0.5, counting.share),
    # groups
    ("each|by each? {group}", 0.45, grouping.groups),
    ("each|by each? {group} and each? {group}", 0.5, grouping.groups),
    ("tcol|flag by_end", 0.45, grouping.distribution),
    ("by? {group} by_end", 0.5, grouping.groups),
    ("bucket|date_which", 0.45, grouping.groups),
    ("bucket and each? {group}", 0.5, grouping.groups),
    ("bucket dcol >of", 0.4, grouping.dated_group),
    ("dcol bucket", 0.3, grouping.dated_group),
    ("and? count tab|mcol? each with?", 0.4, naming.shown_too),
    ("date_which dcol", 0.4, grouping.asked_date),
    ("count? date_part", 1.0, grouping.compared_dates),
    ("each:kind|which:kind|by:kind|each:sort|which:sort tab count?", 0.4, grouping.kinds),
    ("each:kind|by:kind|each:sort tcol", 0.4, grouping.groups),
    ("by by_end tab", 0.4, grouping.kinds),
    ("calendar_part", 1.0, grouping.groups),
    ("growth growth?", 0.3, grouping.growth),
    ("running sum?", 0.3, Parts(flags=("running",))),
    ("both with? vals", 0.3, value_conditions.all_values),
    ("both? with|verb? vals and? both with|verb? vals", 0.3, value_conditions.all_values),
    *((flag, 0.3, Parts(flags=(flag.removeprefix("which:"),))) for flag in FLAGS),
    ("'各' >count|with|verb", 0.3, Parts(flags=("compare",))),
    # rankings
    ("{unit}? with? {most} {figure} {unit}?", 0.4, ranking.ranking),
    ("{most} {unit}?", 0.8, ranking.ranking),
    ("<tab with max|min mcol", 0.3, ranking.ranking),
    ("{unit}? {figure} {most} {unit}?", 0.4, ranking.ranking),
    ("super tab|mcol? 'first'|'last'", 0.4, ranking.ordered),
    ("{most} bucket {figure}", 0.3, ranking.ranking),
    ("max|min {figure} {unit}", 0.3, ranking.ranking),
    ("top num? {unit}?", 0.5, ranking.ranking),
    ("{figure} top num? {unit}?", 0.5, ranking.ranking),
    ("by {figure}", 0.5, ranking.ordering),
    ("dcol 'first'|'last'", 0.4, ranking.by_date),
    ("rank rank?", 0.5, ranking.ranking),
    ("by? {figure} rank rank?", 0.35, ranking.ranking),
    ("rank by? {figure} rank?", 0.4, ranking.ranking),
    # things
    ("list|which? tab list|which?", 0.5, naming.thing),
    ("num tab", 0.6, ranking.limited),
    ("which? tcol|dcol|flag", 0.6, naming.attribute),
    ("tab tcol|dcol|flag", 0.65, naming.attribute),
    ("tcol|dcol|flag of tab", 0.65, naming.attribute),
    ("tab tcol", 0.5, naming.names_of_rows),
    ("tcol of tab", 0.5, naming.names_of_rows),
)  # fmt: skip


def compiled(*tables: Iterable[tuple[str, float, Make]]) -> Patterns:
    """Return the patterns of the tables, by the symbols that may come first in them."""
    by_symbol: dict[str, list[PhrasePattern]] = {}
    for table in tables:
        for text, weight, make in table:
            for alternative in elements(text, PARTS):
                pattern = PhrasePattern(text, alternative, weight, make)
                for symbol in _first_symbols(pattern):
                    by_symbol.setdefault(symbol, []).append(pattern)

    return {symbol: tuple(patterns) for symbol, patterns in by_symbol.items()}


def _first_symbols(pattern: PhrasePattern) -> Iterator[str]:
    """Yield the symbols of the elements up to the first one that is not optional."""
    for element in pattern.elements:
        if element.takes_no_word and element is pattern.elements[0]:
            yield "<"
        else:
            yield from element.symbols

        if not element.optional:
            return


BY_SYMBOL = compiled(TABLE)
