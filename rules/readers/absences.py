"""Reads conditions on what is missing: empty columns, events that did not happen, things that have no others."""

from knowledge.atoms import listed
from rules.query.conditions import Filters, ref
from rules.query.query import Condition, Operator, Related
from rules.readers.reading import Reading
from rules.schema.links import Link
from rules.schema.schema import TableKey, is_outcome


class AbsenceReader:
    """Turns null tests and negated nouns into conditions, and uses up their marks."""

    def __init__(self, reading: Reading, found: Filters) -> None:
        self._reading = reading
        self.found = found

    def read(self) -> None:
        """Reads the null tests that words such as 为空 and "missing" say."""
        reading = self._reading
        for index in list(reading.having("null", "notnull")):
            operator: Operator = "null" if reading.marks[index].means("null") else "not null"
            target = self._null_target(index)
            if target is None:
                continue
            link = self._plain_column(target)
            if link is None:
                continue
            operator = self._reading.negated(min(target, index), operator)
            reading.use(index, target)
            self.found.conditions.append(Condition(ref(link), operator))

    def _null_target(self, index: int) -> int | None:
        """Where the column of a null test stands: after its word ("missing phone") or before it (`电话为空`)."""
        reading = self._reading
        text = reading.marks[index].text
        trailing = text.endswith(("空", "空的", "空值")) or text.startswith(("is ", "are ", "为", "是", "缺失"))
        for step in (-1,) if trailing else (1, -1):
            place = reading.free_beside(index, step, ("noise", "of", "with", "cmp"))
            if place is not None and self._may_be_null(place):
                return place
        return None

    def _may_be_null(self, place: int) -> bool:
        noun = self._reading.noun(place)
        if noun is None or noun.is_value or not noun.columns:
            return False
        return not noun.is_table or self._plain_column(place) is not None

    def _plain_column(self, place: int) -> Link | None:
        """The column that the word names; of a word that also names a table, only one that is not its key or name."""
        reading = self._reading

        def is_plain(link: Link) -> bool:
            facts = reading.facts(link.table)
            return link.quality >= 0.8 and link.column not in (*facts.display, *facts.key, *facts.reference_columns)

        noun = reading.nouns[place]
        return reading.pick(place, is_plain) if noun is not None and noun.is_table else reading.pick(place)

    def read_possessions(self) -> None:
        """Reads `employees with a commission`, `有手机号的客户`: their column must not be empty."""
        reading = self._reading
        for index in list(reading.having("with")):
            place = reading.free_beside(index, 1, ("noise",))
            noun = reading.noun(place)
            said = reading.marks[index].text.lower()
            singular = said.endswith((" a", " an")) or (
                place is not None and reading.marks[place - 1].text.lower() in ("a", "an")
            )
            if singular and self._has_thing(index, place):
                continue
            tied = place is not None and place + 1 < len(reading) and reading.marks[place + 1].means("of")
            if (
                place is None
                or noun is None
                or noun.is_value
                or noun.is_table
                or not (tied if reading.is_chinese else singular)
            ):
                continue
            link = reading.pick(
                place, lambda link: reading.column_of(link).nullable and reading.kind(link) != "boolean"
            )
            after = reading.beside(place, 1, ("noise",))
            if link is not None and not (after is not None and reading.marks[after].means("cmp", "super", "between")):
                reading.use(place)
                self.found.conditions.append(Condition(ref(link), "not null"))

    def _has_thing(self, index: int, place: int | None) -> bool:
        """Reads a table at the end that must have a row: `orders with an employee`; returns whether it did."""
        noun = self._reading.noun(place)
        last = place is not None and place == len(self._reading) - 1
        if not last or noun is None or not noun.is_table or noun.table is None or place is None:
            return False
        self._reading.use(index, place)
        self.found.related.append(Related(noun.table.table))
        return True

    def read_negated_nouns(self) -> None:
        """Reads a negation before a noun: the column has no value, or the table no related rows."""
        reading = self._reading
        for index in list(reading.having("not")):
            place = reading.free_beside(index, 1, ("noise", "of", "unit", "with", "verb"))
            noun = reading.noun(place)
            if place is None or noun is None or noun.is_value:
                continue
            if noun.is_table and noun.table is not None:
                reading.use(index, place)
                self._use_verb(index - 1, noun.table.table)
                self.found.related.append(Related(noun.table.table, self._said_of(place), negated=True))
            elif (link := reading.pick(place)) is not None:
                if reading.marks[index].text in _NOT_DONE and reading.is_measure(link):
                    continue  # `未回款金额` is an amount not yet paid, not an empty one
                reading.use(index, place)
                if self._happens_below(link):
                    self.found.related.append(self._undone_below(index, link))
                else:
                    self.found.conditions.append(Condition(ref(link), "null"))

    def _undone_below(self, index: int, link: Link) -> Related:
        """Says which related rows are missing, or have no date: users that never ordered, books not returned.

        `从未下单的用户` have no order at all; `未归还的图书` have a loan whose date of return is empty.
        """
        outcome = is_outcome(self._reading.column_of(link))
        if not outcome:
            return Related(link.table, negated=True)
        if self._reading.marks[index].text.lower() in _NEVER:
            return Related(link.table, (Condition(ref(link), "not null"),), negated=True)
        return Related(link.table, (Condition(ref(link), "null"),))

    def _use_verb(self, index: int, table: TableKey) -> None:
        """Uses up a verb before the negation that may name a date of what is missing: `clients who made no offers`."""
        noun = self._reading.noun(index) if index >= 0 and self._reading.marks[index].means("verb") else None
        if noun is not None and noun.column is not None and not noun.is_table and noun.column.table == table:
            self._reading.use(index)

    def undone(self, index: int) -> bool:
        """Reads `not shipped` as an empty date, where a column says when that was done; returns whether it did.

        The date is more reliable than "any other status", because later statuses may follow the one that is named.
        """
        reading = self._reading
        noun = reading.nouns[index]
        dates = [link for _, link in noun.columns if reading.is_date(link) and link.quality >= 0.7] if noun else []
        negation = reading.free_beside(index, -1, ("noise", "verb", "with"))
        if not dates or negation is None or not reading.marks[negation].means("not") or self._happens_below(dates[0]):
            return False
        reading.use(index, negation)
        self.found.conditions.append(Condition(ref(dates[0]), "null"))
        return True

    def _said_of(self, place: int) -> tuple[Condition, ...]:
        """Takes over the condition on a value right after a negated event, as in "never ordered Laptop"."""
        reading = self._reading
        after = reading.beside(place, 1, ("noise", "of", "verb"))
        noun = reading.nouns[after] if after is not None and after in reading.used else None
        if noun is None or noun.value is None or not noun.is_value:
            return ()
        said = tuple(one for one in self.found.conditions if one.operands == (noun.value.value,))
        self.found.conditions = [one for one in self.found.conditions if one not in said]
        return said

    def _happens_below(self, link: Link) -> bool:
        """Whether the column is one of a named thing's events, which are then missing: "shops without revenue"."""
        reading = self._reading
        tables = [
            noun.table.table for noun in reading.nouns if noun is not None and noun.is_table and noun.table is not None
        ]
        below = {key for table in tables for key in reading.graph.below(table)}
        return link.table not in tables and link.table in below


_NEVER = frozenset(listed("从未 从没有 从来没有 从来没 未曾 never"))
_NOT_DONE = frozenset(listed("未 尚未 还未 并未 未曾 不"))
