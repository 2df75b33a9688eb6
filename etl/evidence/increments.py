"""Queries that build a target again over what it holds, and made-up rows that come late."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from sqlglot import exp

from etl.evidence.fixture_worlds import World
from etl.evidence.stage import BuildStage
from etl.meaning.bound import BoundColumn, BoundIntent
from etl.meaning.calendar_periods import period_of
from etl.planning.draft_model import DraftModel
from etl.rendering.select_rendering import Naming, render_condition, render_select
from postgres.identifiers import quoted, quoted_list


def increment_query(model: DraftModel, stage: BuildStage, target: str) -> str:
    """Return the query for the rows that are computed again.

    Args:
        target: the relation that holds the model's rows as they are.
    """
    query = render_select(model.select, _naming(model, stage, target), jinja=False)
    condition = _increment(model, stage, target)
    if condition is None:
        return query

    return f"{query}\nWHERE {condition}"


def _increment(model: DraftModel, stage: BuildStage, target: str) -> str | None:
    """Return the condition of the rows that are computed again; None for all."""
    if model.increment is None:
        return None

    return render_condition(model.increment, _naming(model, stage, target), jinja=False)


def _naming(model: DraftModel, stage: BuildStage, target: str) -> Naming:
    def naming(table: exp.Table) -> str:
        is_own = not table.db and table.name == model.name
        if is_own:
            return target

        return stage.relation(table)

    return naming


def built_again(model: DraftModel, stage: BuildStage, target: str) -> str:
    """Return the query for the rows of the target after it is built again."""
    listed = quoted_list(model.types)
    kept = f"SELECT {listed} FROM {target}"
    if model.merge_key is not None:
        key = quoted(model.merge_key)
        kept = f"{kept} WHERE {key} NOT IN (SELECT {key} FROM etl_again)"
        condition = _increment(model, stage, target)
        if condition is not None:
            kept = f"{kept} AND ({condition}) IS NOT TRUE"

    again = increment_query(model, stage, target)
    return (
        f"WITH etl_again AS MATERIALIZED ({again}) {kept} UNION ALL SELECT {listed} FROM etl_again"
    )


def before_late_rows(world: World, bound: BoundIntent) -> World | None:
    """Return the world before some rows within the lookback came; None where none could be late."""
    watermark = bound.target.watermark
    column = None if watermark is None else _stored_column(bound, watermark.column)
    if watermark is None or column is None:
        return None

    key = bound.source(column.source).table.key
    rows = world.tables[key]
    days = {}
    for place, row in enumerate(rows):
        if column.name in row:
            days[place] = _day(row[column.name], bound.time_zone)

    late = _late(days, watermark.lookback_days)
    if not late:
        return None

    earlier = []
    for place, row in enumerate(rows):
        if place not in late:
            earlier.append(row)

    return World(f"{world.name}_before", {**world.tables, key: earlier})


def _stored_column(bound: BoundIntent, column: BoundColumn) -> BoundColumn | None:
    """Return the source's column that a watermark goes by."""
    if column.source:
        return column

    for key in bound.keys:
        if key.name == column.name and key.column.source:
            return key.column

    return None


def _late(days: Mapping[int, date | None], lookback_days: int) -> set[int]:
    """Return the places of every other row of the last days, and of those without a day.

    One row of the last day stays.
    """
    day_by_place = {place: day for place, day in days.items() if day is not None}
    if not day_by_place:
        return set()

    last_place = max(day_by_place, key=lambda place: day_by_place[place])
    first_day = day_by_place[last_place] - timedelta(days=lookback_days)
    candidates = []
    for place, day in days.items():
        is_recent = day is None or day >= first_day
        if is_recent and place != last_place:
            candidates.append(place)

    return set(candidates[::2])


def _day(value: Any, zone: str) -> date | None:
    if isinstance(value, date):
        return period_of(value, "day", zone)

    return None
