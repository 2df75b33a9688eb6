"""The demo's daily figures, as lines for COPY.

Each day comes from a random generator seeded by the day alone, so a day that is appended later has
the same figures as in a fresh database.
"""

import random
from collections.abc import Iterator
from datetime import date, timedelta

from databases.demo.network import (
    FOOD,
    FUEL,
    RENOVATING,
    REPAIR,
    SEED,
    SNACK,
    STORE,
    ServiceArea,
    Shop,
)

# category: yuan per day of an average shop, yuan per order, and the share of each payment type.
_SALES = {
    FUEL: (62000.0, 310.0, (("微信", 0.44), ("支付宝", 0.26), ("银行卡", 0.22), ("现金", 0.08))),
    STORE: (5200.0, 27.0, (("微信", 0.63), ("支付宝", 0.31), ("现金", 0.06))),
    FOOD: (8600.0, 43.0, (("微信", 0.66), ("支付宝", 0.34))),
    SNACK: (2100.0, 18.0, (("微信", 0.7), ("支付宝", 0.3))),
    REPAIR: (1500.0, 270.0, (("微信", 0.6), ("银行卡", 0.4))),
}
# class: vehicles per day into an average area, and the factor by which the holidays' rush applies
# to it.
_VEHICLES = (
    ("客车", 3900.0, 1.0),
    ("货车", 1700.0, -0.35),
    ("危化品车", 85.0, -0.5),
    ("新能源车", 620.0, 1.1),
)
_NEW_ENERGY_YEARLY_GROWTH = 1.35
_YEARLY_GROWTH = 1.06
_GROWTH_FROM = date(2024, 1, 1)
_MONTHS = (0.93, 1.08, 0.92, 1.0, 1.02, 0.95, 1.09, 1.12, 0.98, 1.06, 0.92, 0.94)
_WEEKDAYS = (0.94, 0.9, 0.91, 0.96, 1.12, 1.14, 1.07)

# Holidays of the solar calendar: month and day of the first and the last day, and how much busier
# they are.
_SOLAR_HOLIDAYS = (
    ((1, 1), (1, 3), 0.3),
    ((4, 4), (4, 6), 0.35),
    ((5, 1), (5, 5), 0.75),
    ((10, 1), (10, 7), 0.95),
)
_SPRING_FESTIVALS = (
    *(date(2022, 2, 1), date(2023, 1, 22), date(2024, 2, 10), date(2025, 1, 29), date(2026, 2, 17)),
    *(date(2027, 2, 6), date(2028, 1, 26), date(2029, 2, 13), date(2030, 2, 3), date(2031, 1, 23)),
    *(date(2032, 2, 11), date(2033, 1, 31), date(2034, 2, 19), date(2035, 2, 8), date(2036, 1, 28)),
)

_AREA_SILENT = 0.002  # share of the days on which an area reports nothing at all
_SHOP_SILENT = 0.008  # the same of a shop
_UNREPORTED = 0.004  # share of the rows without an amount or a count
_UNSOLD = 0.002  # share of the rows with nothing sold
_NULL = r"\N"


def holiday_rush(day: date) -> float:
    """Return how much busier than usual a day is because of a holiday: 0 on ordinary days."""
    for festival in _SPRING_FESTIVALS:
        if timedelta(-2) <= day - festival <= timedelta(6):
            return 1.05

    for first, last, rush in _SOLAR_HOLIDAYS:
        if first <= (day.month, day.day) <= last:
            return rush

    return 0.0


def revenue_lines(
    day: date, areas: tuple[ServiceArea, ...], shops: tuple[Shop, ...]
) -> Iterator[str]:
    """Return the rows of `daily_revenue` for one day, in the table's column order."""
    draw = random.Random(f"{SEED}:revenue:{day}")  # noqa: S311 - plausible, not secret
    sizes = {
        area.service_area_id: area.size
        for area in areas
        if draw.random() > _AREA_SILENT and area.works_on(day)
    }
    demand = _season(day) * (1 + 0.8 * holiday_rush(day)) * _growth(day, _YEARLY_GROWTH)
    tail = f"\t{_reported_at(day)}\n"
    for shop in shops:
        factor = demand * shop.appeal * draw.lognormvariate(0.0, 0.12)
        is_silent = draw.random() < _SHOP_SILENT
        size = sizes.get(shop.service_area_id)
        if size is None or is_silent or shop.is_deleted:
            continue

        per_day, per_order, payments = _SALES[shop.category]
        for payment, share in payments:
            yield (
                f"{day}\t{shop.shop_id}\t{payment}\t"
                + _sales(draw, per_day * share * factor * size, per_order)
                + tail
            )


def _sales(draw: random.Random, expected: float, per_order: float) -> str:
    """Return amount and number of orders of one shop and payment type."""
    chance = draw.random()
    if chance < _UNREPORTED:
        return f"{_NULL}\t0"

    orders = (
        0
        if chance < _UNREPORTED + _UNSOLD
        else round(expected / per_order * draw.uniform(0.8, 1.2))
    )
    amount = round(orders * per_order * draw.uniform(0.9, 1.1), 2)
    return f"{amount:.2f}\t{orders}"


def traffic_lines(day: date, areas: tuple[ServiceArea, ...]) -> Iterator[str]:
    """Return the rows of `daily_traffic` for one day, in the table's column order.

    Areas being renovated have traffic too.
    """
    draw = random.Random(f"{SEED}:traffic:{day}")  # noqa: S311
    tail = f"\t{_reported_at(day)}\n"
    for area in areas:
        flow = (
            area.size
            * _season(day)
            * draw.lognormvariate(0.0, 0.06)
            * (1.0 if area.works_on(day) else 0.3)
        )
        if draw.random() < _AREA_SILENT or not (area.works_on(day) or area.status == RENOVATING):
            continue

        for name, per_day, share in _VEHICLES:
            yearly = _NEW_ENERGY_YEARLY_GROWTH if name == "新能源车" else 1.03
            expected = per_day * flow * (1 + share * holiday_rush(day)) * _growth(day, yearly)
            count = (
                _NULL
                if draw.random() < _UNREPORTED
                else str(round(expected * draw.uniform(0.93, 1.07)))
            )
            yield f"{day}\t{area.service_area_id}\t{name}\t{count}{tail}"


def _season(day: date) -> float:
    return _MONTHS[day.month - 1] * _WEEKDAYS[day.weekday()]


def _growth(day: date, yearly: float) -> float:
    return float(yearly ** ((day - _GROWTH_FROM).days / 365.25))


def _reported_at(day: date) -> str:
    return f"{day + timedelta(days=1)} 02:15:00+08"
