"""What a sheet would become as a table: its layout, its columns with types, its problems.

All of the sheet is read, so that what is said of a column holds for each of its values.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from common.text import Text
from files.reading.column_types import (
    ColumnObserver,
    Misfits,
    chosen_form,
    form_named,
    is_ambiguous,
)
from files.reading.header_rows import SAMPLE_ROWS, SheetLayout, layout_of
from files.reading.merged_cells import MergedRows
from files.reading.reading_limits import ReadingLimits
from files.reading.sheets import Batch, Row, Sheet, batches, storable
from files.reading.sql_names import distinct_names
from files.reading.unreadable import refusal
from files.reading.value_forms import ColumnType, ValueForm, readers

_TOTALS = ("合计", "总计", "小计", "总和", "total", "totals", "grandtotal", "sum")


@dataclass(frozen=True)
class ReadingOptions:
    """A caller's corrections of a sheet; None where it is to be guessed.

    Attributes:
        types: the types of the columns, by their numbers from 0.
    """

    header_row: int | None = None
    header_rows: int | None = None
    keeps_totals: bool = False
    types: dict[int, ColumnType] = field(default_factory=dict)


@dataclass(frozen=True)
class RowProblem:
    """Something about rows that the caller should know, with the numbers of the first ones."""

    text: Text
    count: int
    rows: tuple[int, ...]


@dataclass(frozen=True)
class ColumnDraft:
    """A column as it would be loaded.

    Attributes:
        title: as written.
        name: in SQL.
        forms: names of the forms that its values are read by.
        examples: the examples of values as written.
        distinct: its values, where they are few; None: where they are many.
    """

    title: str
    name: str
    type: ColumnType
    forms: tuple[str, ...]
    reason: Text
    examples: tuple[str, ...]
    empty: int
    is_unique: bool
    distinct: tuple[str, ...] | None
    problems: tuple[RowProblem, ...]


@dataclass(frozen=True)
class SheetDraft:
    """A sheet as it would be loaded."""

    layout: SheetLayout
    rows: int
    columns: tuple[ColumnDraft, ...]
    problems: tuple[RowProblem, ...]
    total_row: int | None


def sheet_draft(sheet: Sheet, options: ReadingOptions, limits: ReadingLimits) -> SheetDraft | None:
    """Return the draft of a sheet; None: it is empty.

    Raises:
        UnreadableFile: it can't be read, or is too wide.
    """
    sample = _sample(sheet)
    if options.header_row is not None and options.header_row > len(sample):
        raise refusal(
            f"表头不能在第 {options.header_row} 行：只看前 {len(sample)} 行。",
            f"The header can't be in row {options.header_row}: it is looked for in the first "
            f"{len(sample)} rows.",
        )

    layout = layout_of(sample, sheet.merged, options.header_row, options.header_rows)
    if layout is None:
        return None
    if len(layout.names) > limits.columns:
        raise refusal(
            f"表有 {len(layout.names)} 列，最多 {limits.columns} 列。",
            f"The table has {len(layout.names)} columns; at most {limits.columns} are read.",
        )

    survey = _Survey(len(layout.names))
    data = DataRows(sheet, layout.first_row, keeps_totals=options.keeps_totals)
    for batch in data.batches():
        survey.see(batch)

    return survey.draft(layout, options, data, limits)


class DataRows:
    """The rows of a table's data.

    Attributes:
        merged: which rows got values of merged cells, so far.
        total_row: when all were read, the number of a last row that was left out because it sums
            the others.
    """

    def __init__(self, sheet: Sheet, first_row: int, *, keeps_totals: bool) -> None:
        self._sheet = sheet
        self._first_row = first_row
        self._keeps_totals = keeps_totals
        self.merged = MergedRows(sheet.merged, first_row)
        self.total_row: int | None = None

    def batches(self) -> Iterator[Batch]:
        """Yield the rows; the last ones are held back until it is known that they are."""
        held: Batch | None = None
        rows = self.merged.filled_in(self._sheet.rows())
        for batch in batches(rows, self._first_row):
            if held is not None:
                yield held

            held = batch

        if held is None:
            return
        if not self._keeps_totals and is_total(held.rows[-1]):
            self.total_row = held.numbers[-1]
            held = Batch(held.numbers[:-1], held.rows[:-1], held.cleaned)

        if held.rows:
            yield held


def is_total(row: Row) -> bool:
    """Tell whether a row says that it sums those before it."""
    filled = list(filter(None, row))
    if len(filled) < 2:
        return False

    word = filled[0].rstrip(":： ").replace(" ", "").lower()
    return word in _TOTALS


def columns_of(batch: Batch, width: int) -> list[list[str]]:
    """Return the values of a batch by column; missing cells are empty."""
    lengths = set(map(len, batch.rows))
    if lengths == {width}:
        return list(map(list, zip(*batch.rows, strict=True)))

    padding = [""] * width
    padded = [(row + padding)[:width] for row in batch.rows]
    return list(map(list, zip(*padded, strict=True)))


def _sample(sheet: Sheet) -> list[Row]:
    rows = islice(sheet.rows(), SAMPLE_ROWS)
    return [list(map(str.strip, row)) for row in rows]


class _Survey:
    """Sees all rows of a table."""

    def __init__(self, width: int) -> None:
        self._columns = [ColumnObserver() for _ in range(width)]
        self._rows = 0
        self._cleaned = Misfits()
        self._beyond = Misfits()

    def see(self, batch: Batch) -> None:
        width = len(self._columns)
        self._rows += len(batch.rows)
        for number in batch.cleaned:
            self._cleaned.add(number)

        if any(len(row) > width for row in batch.rows):
            self._look_beyond(batch, width)

        for observer, values in zip(self._columns, columns_of(batch, width), strict=True):
            observer.see(values, batch.numbers)

    def _look_beyond(self, batch: Batch, width: int) -> None:
        for number, row in zip(batch.numbers, batch.rows, strict=True):
            if any(row[width:]):
                self._beyond.add(number)

    def draft(
        self,
        layout: SheetLayout,
        options: ReadingOptions,
        data: DataRows,
        limits: ReadingLimits,
    ) -> SheetDraft:
        titles = [storable(title)[: limits.name_chars] for title in layout.names]
        names = distinct_names(titles, "column")
        columns = []
        for place, observed in enumerate(self._columns):
            is_something = observed.values or titles[place]
            chosen_type = options.types.get(place) if is_something else None
            columns.append(_column(titles[place], names[place], observed, chosen_type))

        problems = tuple(self._problems(data))
        return SheetDraft(layout, self._rows, tuple(columns), problems, data.total_row)

    def _problems(self, data: DataRows) -> Iterator[RowProblem]:
        if self._cleaned.count:
            text = Text("控制字符已去掉", "control characters are taken out")
            yield _problem(text, self._cleaned)

        if self._beyond.count:
            text = Text(
                "最后一列之后还有值，这些值不导入",
                "there are values beyond the last column, which are left out",
            )
            yield _problem(text, self._beyond)

        if data.merged.filled.count:
            text = Text(
                "单元格向下合并：每一行都取合并单元格的值",
                "cells are merged downwards: each of the rows gets their value",
            )
            yield _problem(text, data.merged.filled)

        if data.merged.left_empty.count:
            text = Text(
                "单元格向下合并，数字只在第一行，其余的行留空，以免重复计算",
                "cells are merged downwards: a number stands in the first row only, so that it "
                "counts once",
            )
            yield _problem(text, data.merged.left_empty)

        if data.total_row is not None:
            text = Text("最后一行是合计，不导入", "the last row sums the others, and is left out")
            yield RowProblem(text, 1, (data.total_row,))


def _problem(text: Text, misfits: Misfits) -> RowProblem:
    return RowProblem(text, misfits.count, tuple(misfits.rows))


def _column(
    title: str, name: str, observed: ColumnObserver, chosen_type: ColumnType | None
) -> ColumnDraft:
    if chosen_type is None:
        form = chosen_form(observed, title)
        type_: ColumnType = "text" if form is None else form.type
        reason = _reason(form, observed)
        forms = [] if form is None else [form]
    else:
        form = form_named(chosen_type, observed)
        type_ = chosen_type
        reason = Text("由您指定", "said by you")
        forms = readers(chosen_type, [] if form is None else [form.name])

    return ColumnDraft(
        title,
        name,
        type_,
        tuple(one.name for one in forms),
        reason,
        tuple(observed.examples),
        observed.empty,
        observed.is_unique and observed.values > 0,
        observed.distinct,
        tuple(_column_problems(observed, form, chosen_type)),
    )


def _reason(form: ValueForm | None, observed: ColumnObserver) -> Text:
    if form is not None:
        return FORM_REASONS.get(form.name, _ALL_READ[form.type])
    if observed.values == 0:
        return Text("没有值", "it has no values")
    if any(example[:1] == "0" and example.isdigit() for example in observed.examples):
        return Text("数字以零开头，按文本保留", "numbers begin with zeros, which text keeps")

    return Text("不都是数字或日期", "not all are numbers or dates")


def _column_problems(
    observed: ColumnObserver, form: ValueForm | None, chosen_type: ColumnType | None
) -> Iterator[RowProblem]:
    """Yield the problems of a column that is read by a form, or as text where there is none."""
    if form is None:
        if chosen_type is None:
            yield from _nearly_fitting_problem(observed)

        return

    if observed.markers.count:
        text = Text("这些写法表示没有值", "what stands there means that there is no value")
        yield _problem(text, observed.markers)

    if chosen_type is not None:
        yield from _told_type_problem(observed.misfits(form.name), chosen_type)
    elif is_ambiguous(observed):
        text = Text(
            "日和月无法区分：按日/月/年读取",
            "days and months can't be told apart: read as day/month/year",
        )
        yield RowProblem(text, observed.values, ())


def _told_type_problem(misfits: Misfits, chosen_type: ColumnType) -> Iterator[RowProblem]:
    if misfits.count:
        text = Text(
            f"不符合类型 {chosen_type} 的值会留空",
            f"values that are no {chosen_type} would be left empty",
        )
        yield _problem(text, misfits)


def _nearly_fitting_problem(observed: ColumnObserver) -> Iterator[RowProblem]:
    near = observed.nearly_fitting()
    if near is not None:
        text = Text(
            f"其余的值都是 {near.type}：选这个类型时，这些值会留空",
            f"all other values are {near.type}: with that type, these would be left empty",
        )
        yield _problem(text, observed.misfits(near.name))


_ALL_READ: dict[ColumnType, Text] = {
    "boolean": Text("都是是或否", "all are yes or no"),
    "integer": Text("都是整数", "all are whole numbers"),
    "numeric": Text("都是数字", "all are numbers"),
    "percentage": Text("都是百分数：12.5% 存为 0.125", "percentages: 12.5% is kept as 0.125"),
    "date": Text("都是日期", "all are dates"),
    "timestamp": Text("都是日期和时间", "all are dates with times"),
    "timestamptz": Text("都是带时区的时间", "all are times with a zone"),
    "text": Text("文本", "text"),
}
FORM_REASONS: dict[str, Text] = {
    "grouped_integer": Text("带千位分隔符的整数", "whole numbers with thousands separators"),
    "money": Text("金额或带千位分隔符的数字", "amounts, or numbers with thousands separators"),
    "compact_date": Text("形如 20240105 的日期", "dates such as 20240105"),
    "day_month_year": Text("日/月/年", "day/month/year"),
    "month_day_year": Text("月/日/年", "month/day/year"),
    "year_month": Text("年月，存为当月一日", "months, kept as their first day"),
}
