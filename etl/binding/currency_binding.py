"""Amounts of several currencies, which are never added without asking; tables of rates."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from common.text import Text
from common.values import Catalog, Column, Table
from etl.binding.column_words import is_currency, is_rate
from etl.binding.join_binding import JoinTree
from etl.binding.request_findings import RequestFindings, choice
from etl.binding.scope import IntentScope, column_label
from etl.meaning.bound import BoundColumn
from etl.meaning.value_kinds import DAYS, kind_of_type
from etl.schemas.requirement import Choice
from knowledge.index import IndexPart

GROUP, CONVERT = "group", "convert"


@dataclass(frozen=True)
class RateTable:
    """A table of exchange rates."""

    schema: str
    name: str
    currency: str
    day: str
    rate: str


def _rate_tables(tables: Iterable[Table]) -> tuple[RateTable, ...]:
    rate_tables = []
    for table in tables:
        rates = _as_rates(table)
        if rates is not None:
            rate_tables.append(rates)

    return tuple(rate_tables)


def _as_rates(table: Table) -> RateTable | None:
    """Return a table as one of rates, if one column of each kind that it needs is there."""
    rates, currencies, days = [], [], []
    for column in table.columns:
        if is_rate(column):
            rates.append(column.name)
        if is_currency(column):
            currencies.append(column.name)
        if kind_of_type(column.type) in DAYS:
            days.append(column.name)

    if not len(rates) == len(currencies) == len(days) == 1:
        return None

    return RateTable(table.schema, table.name, currencies[0], days[0], rates[0])


RATE_TABLES = IndexPart(lambda index: _rate_tables(index.catalog.tables), ignores_row_counts=True)


@dataclass(frozen=True)
class Conversion:
    """A conversion of amounts: to the one stored currency that has no rate of its own."""

    rates: RateTable
    to: str


class CurrencyQuestions:
    """Asks what is to be done with amounts beside which several currencies stand.

    Args:
        fixed: columns that conditions hold to one value.
    """

    def __init__(
        self,
        scope: IntentScope,
        findings: RequestFindings,
        catalog: Catalog,
        fixed: set[BoundColumn],
    ) -> None:
        self._scope = scope
        self._findings = findings
        self._catalog = catalog
        self.fixed = fixed

    def currency_of(self, money: BoundColumn, tree: JoinTree) -> BoundColumn | None:
        """Return the column with the currency of an amount: beside it, or of its parent."""
        others = sorted(tree.single(money.source) - {money.source})
        for source in (money.source, *others):
            for column in self._scope.sources[source].table.columns:
                if is_currency(column):
                    return BoundColumn(source, column.name)

        return None

    def is_mixed(self, currency: BoundColumn) -> bool:
        """Tell whether the amounts may be in several currencies."""
        if currency in self.fixed:
            return False

        column = self._scope.stored(currency)
        if len(column.allowed) == 1:
            return False

        is_one = column.is_complete and len(column.values) <= 1
        return not is_one

    def chosen(self, currency: BoundColumn, conversion: Conversion | None, operation: int) -> str:
        """Return `group`, `convert` or the one currency that was chosen.

        Raises:
            NotBound
        """
        choices = [choice(GROUP, self._label(GROUP))]
        if conversion is not None:
            choices.append(choice(CONVERT, self._label(CONVERT, conversion.to)))

        column = self._scope.stored(currency)
        choices.extend(self._currency_choices(column))
        name = column_label(currency)
        prompt = Text(
            f"金额有多种币种（{name}），怎样汇总？",
            f"The amounts are in several currencies ({name}). How are they added up?",
        )
        return self._findings.choose("currency", name, prompt, choices, operation)

    def _label(self, value: str, to: str = "") -> str:
        texts = {
            GROUP: Text("按币种分组", "group by currency"),
            CONVERT: Text(f"按汇率换算为 {to}", f"convert to {to}"),
        }
        return self._findings.shown(texts[value])

    def _currency_choices(self, column: Column) -> Iterator[Choice]:
        for value in column.allowed or column.values:
            label = Text(f"只要 {value}", f"only {value}")
            yield choice(value, self._findings.shown(label))

    def conversion(self, currency: BoundColumn) -> Conversion | None:
        """Return how amounts can be converted, if one table of rates tells."""
        stored = self._scope.stored(currency)
        rate_tables = []
        for rates in RATE_TABLES.of(self._catalog):
            for to in self._without_rate(stored, rates):
                rate_tables.append(Conversion(rates, to))

        if len(rate_tables) == 1:
            return rate_tables[0]

        return None

    def _without_rate(self, stored: Column, rates: RateTable) -> Sequence[str]:
        """Return the one currency that is stored and has no rate, if there is just one."""
        table = self._catalog.by_key[rates.schema, rates.name]
        rated = table.column(rates.currency)
        if rated is None or not rated.values:
            return ()

        missing = []
        for value in stored.allowed or stored.values:
            if value not in rated.values:
                missing.append(value)

        if len(missing) == 1:
            return missing

        return ()
