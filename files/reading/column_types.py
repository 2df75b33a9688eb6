"""Which type each column has: the forms that read its values, and the values that don't fit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, starmap
from operator import lt

from files.reading.value_forms import (
    FORMS,
    SEPARATOR,
    ColumnType,
    ValueForm,
    forms_of,
    is_null,
)

_ENOUGH = 200  # values after which a form that reads too few of them is given up
_LEAST_SHARE = 0.9  # of the values, that a form reads which is worth being proposed
_MOST_ROWS = 5  # numbers of rows that are kept of what does not fit
_MOST_EXAMPLES = 3
_EXAMPLE_CHARS = 60
_MOST_KEYS = 200_000  # values of a column that are remembered to see whether one comes twice
_MOST_DISTINCT = 500  # values that are kept of a column, to be compared with keys
_MOST_KNOWN = 20_000  # values that are remembered to be well written
_LONGEST_KEY = 64
_DATE_WORDS = ("日期", "时间", "date", "day")


@dataclass
class Misfits:
    """The values of a column that a form does not read.

    Attributes:
        rows: numbers of the first ones.
    """

    count: int = 0
    rows: list[int] = field(default_factory=list)

    def add(self, row: int) -> None:
        """Count one more, and remember its row while there is room."""
        self.count += 1
        if len(self.rows) < _MOST_ROWS:
            self.rows.append(row)


class ColumnObserver:
    """Sees all values of one column, and says what they are."""

    def __init__(self) -> None:
        self.values = 0
        self.empty = 0
        self.markers = Misfits()
        self.examples: list[str] = []
        self._misfits: dict[str, Misfits] = {form.name: Misfits() for form in FORMS}
        self._open: list[ValueForm] = list(FORMS)
        self._well_read: set[str] = set()  # values that all open forms read
        self._seen: set[str] | None = set()
        self._last: int | None = None
        self.is_unique = True
        self._distinct: dict[str, None] | None = {}

    def see(self, values: Sequence[str], rows: Sequence[int]) -> None:
        """Look at a batch of values, with the numbers of their rows."""
        empty = values.count("")
        self.empty += empty
        self.values += len(values) - empty
        self._keep_examples(values)
        self._look_for_keys(values, has_empty=empty > 0)
        if not self._open:
            return

        joined = SEPARATOR.join(values) + SEPARATOR
        undecided = [form for form in self._open if not _reads_surely(form, joined)]
        for start in range(0, len(values), _ENOUGH):
            undecided = [form for form in undecided if form in self._open]
            if not undecided:
                break

            end = start + _ENOUGH
            self._try_each(undecided, values[start:end], rows[start:end])
            self._give_up(self.values - len(values) + empty + end)

    def _keep_examples(self, values: Sequence[str]) -> None:
        for value in values:
            if len(self.examples) >= _MOST_EXAMPLES:
                return

            shown = value[:_EXAMPLE_CHARS]
            if shown and shown not in self.examples:
                self.examples.append(shown)

    def _look_for_keys(self, values: Sequence[str], *, has_empty: bool) -> None:
        if has_empty:
            self.is_unique = False
        if self.is_unique and not self._note_ascending(values):
            self._note_duplicates(values)

        self._keep_distinct(values)

    def _keep_distinct(self, values: Sequence[str]) -> None:
        """Remember the values while they are few and short, as keys are."""
        if self._distinct is None:
            return

        self._distinct.update(dict.fromkeys(values))
        self._distinct.pop("", None)
        are_many = len(self._distinct) > _MOST_DISTINCT
        longest = max(map(len, values))
        if are_many or longest > _LONGEST_KEY:
            self._distinct = None

    def _note_ascending(self, values: Sequence[str]) -> bool:
        """Note whether the values are numbers that grow, so that none can come twice; tell it."""
        if self._last is None and self._seen:
            return False
        if not all(map(str.isdecimal, (values[0], values[-1]))):
            return self._note_descending()

        try:
            numbers = list(map(int, values))
        except ValueError:
            return self._note_descending()

        before = -1 if self._last is None else self._last
        steps = pairwise((before, *numbers))
        if not all(starmap(lt, steps)):
            return self._note_descending()

        self._last = numbers[-1]
        return True

    def _note_descending(self) -> bool:
        """Note that the values don't grow: whether one comes twice is then not known any more."""
        if self._last is not None:
            self.is_unique = False
            self._last = None

        return False

    def _note_duplicates(self, values: Sequence[str]) -> None:
        if not self.is_unique or self._seen is None:
            return

        before = len(self._seen)
        self._seen.update(values)
        comes_twice = len(self._seen) < before + len(values)
        if comes_twice or len(self._seen) > _MOST_KEYS:
            self.is_unique = False
            self._seen = None

    def _try_each(
        self, forms: Sequence[ValueForm], values: Sequence[str], rows: Sequence[int]
    ) -> None:
        well_read = self._well_read
        if len(well_read) > _MOST_KNOWN:
            well_read.clear()

        for value, row in zip(values, rows, strict=True):
            if not value or value in well_read:
                continue
            if is_null(value):
                self.markers.add(row)
                continue

            is_read = self._try_value(forms, value, row)
            if is_read and len(forms) == len(self._open):
                well_read.add(value)

    def _try_value(self, forms: Sequence[ValueForm], value: str, row: int) -> bool:
        """Note the forms that do not read a value; tell whether all of them do."""
        unread = [form for form in forms if form.read(value) is None]
        for form in unread:
            self._misfits[form.name].add(row)

        return not unread

    def _give_up(self, tried: int) -> None:
        """Drop the forms that read too little; the others may still be proposed."""
        seen = min(tried, self.values) - self.markers.count
        if seen < _ENOUGH:
            return

        self._open = self._leaving_unread((1 - _LEAST_SHARE) * seen)

    def _leaving_unread(self, most: float) -> list[ValueForm]:
        """Return the forms that may still be proposed and don't read at most so many values."""
        return [form for form in self._open if self.misfits(form.name).count <= most]

    @property
    def distinct(self) -> tuple[str, ...] | None:
        """Return the values, where there are few."""
        if self._distinct is None:
            return None

        return tuple(self._distinct)

    def misfits(self, form: str) -> Misfits:
        """Return the values that the form does not read, as far as it was tried."""
        return self._misfits[form]

    def fitting(self) -> list[ValueForm]:
        """Return the forms that read every value."""
        if self.values == self.markers.count:
            return []

        return self._leaving_unread(0)

    def nearly_fitting(self) -> ValueForm | None:
        """Return the form that reads all but a few values, where there is one."""
        seen = self.values - self.markers.count
        if seen == 0:
            return None

        near = self._leaving_unread((1 - _LEAST_SHARE) * seen)
        return self.best_of(near)

    def best_of(self, forms: Sequence[ValueForm]) -> ValueForm | None:
        """Return the first of the forms that leave the fewest values unread; None: no forms."""
        return min(forms, key=lambda form: self.misfits(form.name).count, default=None)


def _reads_surely(form: ValueForm, joined: str) -> bool:
    """Tell whether a form reads all values; of dates, the 30 February looks like one."""
    if form.type in ("date", "timestamp", "timestamptz"):
        return form.are_plain(joined)

    return form.reads_all(joined)


def chosen_form(observed: ColumnObserver, name: str) -> ValueForm | None:
    """Return the form by which a column is read, by its values and its name; None: as text."""
    fitting = {form.name: form for form in observed.fitting()}
    compact_date = fitting.pop("compact_date", None)  # 20240131 may be a plain number, too
    is_dated = any(word in name.lower() for word in _DATE_WORDS)
    if compact_date is not None and is_dated:
        return compact_date

    others = iter(fitting.values())
    return next(others, None)


def is_ambiguous(observed: ColumnObserver) -> bool:
    """Tell whether days and months can be told apart by nothing but custom."""
    names = {form.name for form in observed.fitting()}
    return {"day_month_year", "month_day_year"} <= names


def form_named(type_: ColumnType, observed: ColumnObserver) -> ValueForm | None:
    """Return the best form of a type that a caller has chosen; None: text."""
    return observed.best_of(forms_of(type_))
