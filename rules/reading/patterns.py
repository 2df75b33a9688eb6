"""The patterns: one line says what a run of words means, what reading them so costs, and what it gives.

`matching` explains the language. Both languages share a pattern wherever their order of words allows it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rules.reading import asking, restricting
from rules.reading.matching import Element, Match, elements
from rules.reading.parts import Parts

Make = Callable[[Match], Parts | None]


@dataclass(frozen=True)
class Pattern:
    """A pattern, what it costs to use it, and what it gives for a match (None if the match means nothing)."""

    text: str
    elements: tuple[Element, ...]
    weight: float
    make: Make

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


PARTS: Mapping[str, tuple[str, ...]] = {
    "compared": (
        "not? cmp num", "num cmp", "between num to|and|'to' num between_end?", "from? num to|'to' num between_end?",
        "num and|to num between_end", "cmp:=? from|'in' num to|and|'to' num between_end",
    ),
    "when": (
        "dates", "range|cmp|from dates", "dates range|'前'|'后'|'起'|'前的'", "from dates range|'起'", "not dates",
        "between dates between_end?", "dates between_end", "from dates range:now",
    ),
    "agg": ("sum", "avg", "max", "min", "median", "stddev"),
    "group": ("tab", "tcol", "flag", "dcol", "date_part", "bucket", "calendar_part"),
    "figure": ("mcol", "sum|avg|max|min|median mcol", "mcol sum|avg|median", "tab count", "count sum? tab", "sum? count sum? tab", "tab", "dcol count", "dcol", "count mcol", "vals"),
    "most": ("super", "super num", "num super", "top? super num", "super top num", "top num super", "top super"),
    "thing": ("tab", "mcol"),
    "column": ("tcol", "mcol", "dcol", "flag"),
}  # fmt: skip

_TABLE: tuple[tuple[str, float, Make], ...] = (
    # values
    ("vals", 0.5, restricting.values),
    ("not vals", 0.5, restricting.values),
    ("not? vals except_end", 0.4, restricting.values),
    ("cmp:=|cmp:!= not? vals", 0.5, restricting.values),
    ("tcol|flag|mcol|dcol not|cmp:=|cmp:!=? not? vals", 0.4, restricting.labelled_values),
    ("vals tcol|flag", 0.45, restricting.labelled_values),
    ("not? from|with vals", 0.5, restricting.values),
    ("by vals", 0.6, restricting.values),
    ("tab named? vals", 0.75, restricting.values_of_table),
    ("named vals", 0.5, restricting.values),
    ("vals '下属'|'下属的'|'下级'|'下辖'|'旗下' >tab", 0.4, restricting.below_value),
    ("flag", 0.5, restricting.flag),
    ("not flag", 0.5, restricting.flag),
    ("like vals", 0.6, restricting.possessed),
    ("count vals", 0.6, asking.count_values),
    ("count flag", 0.6, asking.count_flag),
    ("with flag", 0.5, restricting.flag),
    ("dcol|tcol|mcol", 0.5, restricting.deletion),
    ("not dcol|tcol|mcol", 0.5, restricting.deletion),
    ("deleted:with", 0.2, restricting.with_deleted),
    # identity and text
    ("tab cmp:=? num|lit", 0.7, restricting.identity),
    ("tcol|mcol cmp:=? num", 0.6, restricting.identity),
    ("tcol cmp:=? lit", 0.5, restricting.identity),
    ("tcol|tab not? like lit|unk|num|val", 0.4, restricting.text),
    ("not? like lit|unk|num", 0.6, restricting.text),
    ("by? lit|unk|num|val like:prefix|like:suffix tcol|tab", 0.4, restricting.text),
    ("tcol|tab by lit|unk|num|val like:prefix|like:suffix", 0.3, restricting.text),
    ("tab? named lit|unk", 0.4, restricting.text),
    # what is missing
    ("{column} cmp:=? not? null|notnull", 0.4, restricting.null),
    ("not? null|notnull {column}", 0.4, restricting.null),
    ("not with? tcol|mcol|dcol", 0.6, restricting.lacking),
    ("not dcol", 0.55, restricting.undone),
    ("not with? verb? tab", 0.5, restricting.without),
    ("not with? verb? tab vals", 0.5, restricting.without),
    ("not with? verb? vals tab", 0.6, restricting.without),
    ("with tcol|mcol|dcol of", 0.7, restricting.having),
    ("with tcol|mcol|dcol|tab", 0.6, restricting.having_one),
    ("dcol of? >tab", 0.55, restricting.done),
    ("<tab dcol", 0.58, restricting.done),
    # comparisons
    ("mcol {compared}", 0.4, restricting.threshold),
    ("{agg} mcol {compared}", 0.4, restricting.threshold),
    ("mcol {agg} {compared}", 0.4, restricting.threshold),
    ("tab sum? count cmp:=? {compared}", 0.4, restricting.threshold),
    ("count tab {compared}", 0.4, restricting.threshold),
    ("tab {compared}", 0.6, restricting.threshold_of_table),
    ("with? {compared} tab", 0.55, restricting.threshold),
    ("with? {compared} mcol", 0.5, restricting.threshold),
    ("sum? {compared}", 0.9, restricting.threshold),
    ("with? num mcol", 0.7, restricting.identity),
    ("mcol {compared} and {compared}", 0.3, restricting.two_thresholds),
    ("tab? count? {compared} and {compared} tab?", 0.5, restricting.two_thresholds),
    ("mcol above_average|below_average mcol?", 0.3, restricting.average),
    ("above_average|below_average mcol", 0.4, restricting.average),
    ("dcol cmp num date_part", 0.3, restricting.duration),
    ("mcol not? cmp mcol", 0.4, restricting.columns_compared),
    ("dcol not? cmp|range:after|range:before dcol", 0.4, restricting.columns_compared),
    # periods
    ("from? calendar", 0.4, restricting.weekday),
    ("not calendar", 0.4, restricting.weekday),
    ("dcol calendar", 0.4, restricting.weekday),
    ("{when}", 0.4, restricting.span),
    ("date_part:week of dates", 0.2, restricting.week_of),
    ("dcol {when}", 0.35, restricting.span),
    ("dcol cmp:=|with {when}", 0.35, restricting.span),
    ("{when} dcol", 0.35, restricting.span),
    ("{when} dcol and dcol", 0.4, restricting.span),
    ("dcol and dcol {when}", 0.4, restricting.span),
    # figures
    ("count distinct? tab", 0.45, asking.count),
    ("count sum? tab", 0.45, asking.count),
    ("sum count tab", 0.45, asking.count),
    ("tab sum? count", 0.45, asking.count),
    ("tab and tab count", 0.5, asking.count),
    ("count tab and tab", 0.5, asking.count),
    ("count distinct? tcol|dcol|mcol", 0.6, asking.count_column),
    ("distinct? tcol|dcol|mcol count", 0.6, asking.count_column),
    ("count", 0.9, asking.says("how many")),
    ("sum", 0.8, asking.says("sum")),
    ("avg", 0.8, asking.says("avg")),
    ("{agg} mcol", 0.4, asking.aggregate),
    ("mcol {agg}", 0.4, asking.aggregate),
    ("{agg} and|and? {agg} mcol", 0.4, asking.aggregate),
    ("{agg} and? {agg} and? {agg} mcol", 0.4, asking.aggregate),
    ("mcol {agg} and|and? {agg}", 0.4, asking.aggregate),
    ("{agg} mcol and mcol", 0.5, asking.aggregate),
    ("max|min dcol", 0.4, asking.aggregate),
    ("num percentile mcol", 0.3, asking.aggregate),
    ("mcol num percentile", 0.3, asking.aggregate),
    ("{agg} tab mcol", 0.4, asking.owned_aggregate),
    ("tab {agg} mcol", 0.4, asking.owned_aggregate),
    ("tab mcol {agg}", 0.4, asking.owned_aggregate),
    ("sum tab", 0.7, asking.total_rows),
    ("tab sum", 0.7, asking.total_asked),
    ("count {thing} noise:rows", 0.3, asking.count_rows),
    ("{thing} noise:rows? count", 0.35, asking.count_rows),
    ("count noise:rows of {thing}", 0.3, asking.count_rows),
    ("avg_per mcol", 0.4, asking.averaged_per_unit),
    ("mcol avg_per", 0.4, asking.averaged_per_unit),
    ("avg bucket mcol", 0.4, asking.averaged_per_unit),
    ("per_entity tab?", 0.4, asking.per_entity),
    ("mcol", 0.5, asking.measure),
    ("mcol cmp:=? count", 0.5, asking.measure),
    ("count mcol", 0.6, asking.measure),
    ("tab mcol", 0.6, asking.owned_measure),
    ("mcol share", 0.5, asking.share),
    ("tab count? share", 0.5, asking.share),
    ("share mcol|tab", 0.5, asking.share),
    ("share", 0.4, asking.share),
    # groups
    ("each|by each? {group}", 0.45, asking.groups),
    ("each|by each? {group} and each? {group}", 0.5, asking.groups),
    ("each|by each? tab tcol|flag", 0.5, asking.owned_group),
    ("each|by tcol tcol", 0.3, asking.role_group),
    ("{group} by_end", 0.5, asking.groups),
    ("tcol|flag by_end", 0.45, asking.distribution),
    ("by {group} by_end", 0.3, asking.groups),
    ("bucket", 0.45, asking.groups),
    ("bucket dcol >of", 0.4, asking.dated_group),
    ("date_which", 0.45, asking.groups),
    ("date_which dcol", 0.4, asking.asked_date),
    ("date_part", 1.0, asking.compared_dates),
    ("count date_part", 0.6, asking.compared_dates),
    ("each:kind|which:kind|by:kind|each:sort|which:sort tab", 0.4, asking.kinds),
    ("each:kind|by:kind|each:sort tab count", 0.5, asking.kinds),
    ("each:kind|by:kind|each:sort tcol", 0.4, asking.groups),
    ("by by_end tab", 0.4, asking.kinds),
    ("calendar_part", 1.0, asking.groups),
    ("growth growth?", 0.3, asking.growth),
    ("or", 0.4, asking.says("or")),
    ("both vals", 0.3, restricting.all_values),
    ("trend", 0.3, asking.says("trend")),
    ("compare", 0.3, asking.says("compare")),
    ("'各' >count|with|verb", 0.3, asking.says("compare")),
    ("distinct", 0.3, asking.says("distinct")),
    # rankings
    ("{figure} {most}", 0.5, asking.ranking),
    ("{most} {figure}", 0.5, asking.ranking),
    ("with {most} {figure}", 0.5, asking.ranking),
    ("{most}", 0.8, asking.ranking),
    ("{figure} {most} date_part", 0.4, asking.ranking),
    ("{most} date_part", 0.6, asking.ranking),
    ("{most} {figure} date_part", 0.4, asking.ranking),
    ("date_part with? {most} {figure}", 0.4, asking.ranking),
    ("date_part {figure} {most}", 0.4, asking.ranking),
    ("{most} bucket {figure}", 0.3, asking.ranking),
    ("max|min {figure} date_part", 0.3, asking.ranking),
    ("date_part max|min {figure}", 0.3, asking.ranking),
    ("top num", 0.5, asking.ranking),
    ("top", 0.6, asking.ranking),
    ("top num date_part", 0.5, asking.ranking),
    ("{figure} top num", 0.5, asking.ranking),
    ("{figure} top num date_part", 0.4, asking.ranking),
    ("{figure} top", 0.6, asking.ranking),
    ("by {figure}", 0.5, asking.ordering),
    ("rank", 0.5, asking.ranking),
    ("rank rank", 0.5, asking.ranking),
    ("by {figure} rank rank?", 0.3, asking.ranking),
    ("{figure} rank rank?", 0.4, asking.ranking),
    ("rank by? {figure}", 0.4, asking.ranking),
    ("rank by? {figure} rank", 0.3, asking.ranking),
    # things
    ("tab", 0.5, asking.thing),
    ("list|which tab", 0.45, asking.thing),
    ("tab list|which", 0.45, asking.thing),
    ("num tab", 0.6, asking.limited),
    ("tcol|dcol|flag", 0.6, asking.attribute),
    ("which tcol|dcol|flag", 0.55, asking.attribute),
    ("tab tcol|dcol|flag", 0.65, asking.attribute),
    ("tcol|dcol|flag of tab", 0.65, asking.attribute),
    ("tab tcol", 0.5, asking.name_of),
    ("tcol of tab", 0.5, asking.name_of),
    ("which:person", 0.3, asking.person),
    ("which:when", 0.2, asking.says("when")),
)  # fmt: skip

PATTERNS = tuple(Pattern(text, one, weight, make) for text, weight, make in _TABLE for one in elements(text, PARTS))


def _by_symbol() -> dict[str, tuple[Pattern, ...]]:
    """The patterns by the symbols that may come first; those that look at the word before by `<`."""
    found: dict[str, list[Pattern]] = {}
    for pattern in PATTERNS:
        for element in pattern.elements:
            for symbol in ("<",) if element.looks and element is pattern.elements[0] else element.symbols:
                found.setdefault(symbol, []).append(pattern)
            if not element.optional:
                break
    return {symbol: tuple(patterns) for symbol, patterns in found.items()}


BY_SYMBOL = _by_symbol()
