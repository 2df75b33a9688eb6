"""Reads stored values, keys and flags in the question as conditions on their columns."""

from dataclasses import replace
from decimal import Decimal

from common.text import Text
from knowledge.atoms import listed
from knowledge.naming import has_han
from rules.linking.longer_names import longer_name, longer_title, longer_word
from rules.query.conditions import Filters, ref
from rules.query.query import OPPOSITE, ColumnRef, Condition, Operator
from rules.query.refusals import nobody_called, unknown_words, unused_words
from rules.readers.absences import AbsenceReader
from rules.readers.reading import Reading
from rules.schema.links import Link
from rules.schema.schema import TableKey, flag_codes, kind_of


class ValueReader:
    """Turns values, keys and flags into conditions, and uses up their marks."""

    def __init__(self, reading: Reading, found: Filters) -> None:
        self._reading = reading
        self.found = found
        self._roles: dict[int, str] = {}

    def read(self) -> None:
        """Reads every value, key and flag."""
        reading = self._reading
        index = 0
        while index < len(reading):
            noun = reading.noun(index)
            if noun is not None and noun.value is not None and (noun.is_value or self._after_column(index)):
                index = index if AbsenceReader(reading, self.found).undone(index) else self._value_list(index)
            index += 1
        self._identities()
        self._booleans()

    def _after_column(self, index: int) -> bool:
        """Whether a word that may also be a name is a value, because its column stands before it: `status is open`."""
        reading = self._reading
        before = reading.beside(index, -1, ("noise", "cmp"))
        noun, own = (reading.nouns[before] if before is not None else None), reading.nouns[index]
        if noun is None or own is None or own.value is None or before == index - 1 and not reading.is_chinese:
            return False
        pairs = {(link.table, link.column) for _, link in noun.columns}
        return any((link.table, link.column) in pairs for _, link in own.values)

    def _value_list(self, index: int) -> int:
        """Reads values joined by 和 / or / commas as one condition; returns the last position."""
        reading = self._reading
        places = [index]
        joints: list[int] = []
        while True:
            joint = places[-1] + 1
            skipped = reading.beside(places[-1], 1, ("and", "or", "noise", "of"))
            if skipped is None or skipped == joint:
                break
            noun = reading.noun(skipped)
            between = range(joint, skipped)
            if (
                noun is None
                or not noun.is_value
                or not any(reading.marks[place].means("and", "or") for place in between)
            ):
                break
            if not self._common_columns([*places, skipped]):
                break
            places.append(skipped)
            joints += between
        links = self._chosen_values(places)
        reading.use(*places, *joints)
        if joints and not any(reading.marks[place].means("or") for place in joints):
            self.found.conjoined.add(ref(links[0]))
        self._add_values(places, links)
        return places[-1]

    def _common_columns(self, places: list[int]) -> list[tuple[TableKey, str | None]]:
        nouns = [self._reading.nouns[place] for place in places]
        columns = [[(link.table, link.column) for _, link in noun.values] if noun else [] for noun in nouns]
        return [column for column in columns[0] if all(column in others for others in columns[1:])]

    def _chosen_values(self, places: list[int]) -> list[Link]:
        column = self._common_columns(places)[0]
        chosen = []
        for place in places:
            noun = self._reading.nouns[place]
            assert noun is not None
            chosen.append(next(link for _, link in noun.values if (link.table, link.column) == column))
        return chosen

    def _add_values(self, places: list[int], links: list[Link]) -> None:
        reading = self._reading
        operator: Operator = "=" if len(links) == 1 else "in"
        self._absorb_label(places[0], -1, links[0])
        self._absorb_label(places[-1], 1, links[0])
        negation = reading.free_beside(places[0], -1, _NEGATION_SKIP)
        closing = reading.free_beside(places[-1], 1, ("noise",))
        excepted = closing is not None and reading.marks[closing].means("except_end")
        if excepted and closing is not None:
            reading.use(closing)
        if (negation is not None and reading.marks[negation].means("not")) or excepted:
            self._refuse_lacking_figure(negation, places[-1])
            operator = OPPOSITE[operator]
            reading.use(*(() if negation is None or not reading.marks[negation].means("not") else (negation,)))
        elif (sign := reading.free_beside(places[0], -1, ("noise",))) is not None and reading.is_equality(sign):
            operator = OPPOSITE[operator] if reading.marks[sign].arg == "!=" else operator
            reading.use(sign)
        operands = tuple(str(link.value) for link in links)
        self._note_guesses(places, links)
        if reading.facts(links[0].table).deleted == links[0].column:
            self.found.with_deleted.add(links[0].table)
        if reading.kind(links[0]) == "boolean":
            operator, operands = ("false" if operator == "=" else "true"), ()
        elif reading.is_date(links[0]):
            operator, operands = ("null" if operator == "=" else "not null"), ()
        via = self._role_before(places[0], links[0]) or self._above_children(places[-1], links[0])
        column = replace(ref(links[0]), via=via)
        if len(links) > 1:
            self.found.compared.append(column)
        self.found.conditions.append(Condition(column, operator, operands))

    def _refuse_lacking_figure(self, negation: int | None, last: int) -> None:
        """Refuses a negated value before a figure, as `没有新能源车流量的服务区`.

        It asks for things that have no such figure. A condition "another value" would find those that have others.

        Raises:
            Refusal: this is such a question.
        """
        reading = self._reading
        lacks = negation is not None and reading.marks[negation].text.lower() in _LACKS
        after = reading.free_beside(last, 1, ("noise",)) if lacks else None
        if negation is not None and after is not None and reading.noun(after) and reading.measure(after) is not None:
            raise unused_words([reading.marks[negation].text])

    def _note_guesses(self, places: list[int], links: list[Link]) -> None:
        """Notes for the answer where a part of a value was taken for the whole."""
        for place, link in zip(places, links, strict=True):
            self._refuse_others_name(place, link)
            if link.quality < _WHOLE_VALUE:
                self._refuse_torn(place)
                said = self._reading.marks[place].text
                note = Text(f"“{said}”按“{link.value}”查询。", f'"{said}" was taken to mean "{link.value}".')
                self.found.notes.append(note)

    def _refuse_others_name(self, place: int, link: Link) -> None:
        """Refuses a word that is only a part of a stored name, or has a stored name as a part: it names somebody else.

        Raises:
            Refusal: nothing has this name; the similar one is offered.
        """
        reading = self._reading
        if link.is_exact and link.quality < _WHOLE_VALUE:
            self._refuse_torn(place)
            raise nobody_called(reading.marks[place].text, [str(link.value)])
        is_whole = link.quality >= _WHOLE_VALUE
        longer = longer_word(reading.marks, place) or longer_title(reading.marks, place, is_whole=is_whole)
        is_named = [noun is not None for noun in reading.nouns]
        longer = longer or longer_name(reading.marks, place, is_named, of_person=link.is_exact)
        if longer is not None:
            raise nobody_called(longer, [str(link.value)])
        if link.is_exact:
            self._refuse_torn(place)

    def _refuse_torn(self, place: int) -> None:
        """Refuses a part of a stored name after a character that may be a surname, such as 张: it is another person.

        Raises:
            Refusal: both together are one unknown word.
        """
        marks = self._reading.marks
        before = marks[place - 1] if place and marks[place].glued else None
        counted = place > 1 and marks[place - 2].number is not None
        if before is not None and before.means("unit") and not counted and has_han(before.text):
            raise unknown_words([before.text + marks[place].text], self._reading.lexicon)

    def _role_before(self, index: int, link: Link) -> str | None:
        """The reference named right before a value of its target: "whose manager is Nancy Fuller"; else None."""
        reading = self._reading
        place = reading.beside(index, -1, ("noise", "cmp", "verb", "with", "to", "by"))
        noun = reading.nouns[place] if place is not None else None
        if place is None or noun is None:
            return None
        if noun.is_value:
            return self._roles.get(place) if index - place == 1 else None
        for edge in reading.facts(noun.column.table).edges if noun.column is not None and not noun.is_table else ():
            if edge.columns == (noun.column.column if noun.column else None,) and edge.parent == link.table:
                self._roles[index] = edge.columns[0]
                reading.use(place, *(at for at in range(place + 1, index) if reading.marks[at].means("by")))
                return edge.columns[0]
        return None

    def _above_children(self, index: int, link: Link) -> str | None:
        """The table's reference to itself, where the rows below a named one are asked for: `总公司下属的部门`."""
        reading = self._reading
        below = index + 1 < len(reading) and reading.marks[index + 1].text in _BELOW
        thing = reading.beside(index + 1, 1) if below else None
        noun = reading.nouns[thing] if thing is not None else None
        if noun is None or noun.table is None or noun.table.table != link.table:
            return None
        own = [edge.columns[0] for edge in reading.facts(link.table).edges if edge.parent == edge.child]
        return own[0] if len(own) == 1 else None

    def _absorb_label(self, index: int, step: int, link: Link) -> None:
        """Uses up the column's own name beside its value (`支付方式为微信`, "category Electronics")."""
        reading = self._reading
        place = reading.free_beside(index, step, ("noise", "cmp", "of", "not", "from") if step == -1 else ("noise",))
        noun = reading.noun(place)
        if place is None or noun is None or noun.is_value:
            return
        before = reading.beside(place, -1)
        if before is not None and reading.marks[before].means("each", "by", "which"):
            return
        same = any((other.table, other.column) == (link.table, link.column) for _, other in noun.columns)
        own_table = noun.table is not None and noun.table.table == link.table and noun.is_table
        shows = link.column in reading.facts(link.table).display
        if same and not noun.is_table or own_table and shows and not self._is_only_table(place):
            reading.use(place)

    def _is_only_table(self, index: int) -> bool:
        others = [
            place
            for place, noun in enumerate(self._reading.nouns)
            if noun is not None and place != index and not noun.is_value and place not in self._reading.used
        ]
        return not others

    def _identities(self) -> None:
        """Reads a number or quotation after a table or a key as an identity: `order 1001`, `编号为3的服务区`."""
        reading = self._reading
        for index in range(len(reading)):
            mark = reading.marks[index]
            if (
                not reading.free(index)
                or (mark.number is None and mark.literal is None)
                or self._reading.is_ordinal(index)
            ):
                continue
            before = reading.free_beside(index, -1, ("noise", "cmp"))
            noun = reading.noun(before)
            if before is None or noun is None or noun.is_value:
                continue
            target = self._identity_column(before, is_text=mark.literal is not None)
            if target is not None:
                operand = mark.literal if mark.literal is not None else mark.number.value  # type: ignore[union-attr]
                reading.use(index, *(() if noun.is_table else (before,)), *self._between_marks(before, index))
                self.found.conditions.append(Condition(target, "=", (operand,)))

    def _between_marks(self, first: int, last: int) -> list[int]:
        return [place for place in range(first + 1, last) if self._reading.marks[place].means("cmp")]

    def _identity_column(self, index: int, *, is_text: bool) -> ColumnRef | None:
        reading = self._reading
        noun = reading.nouns[index]
        if noun is not None and noun.is_table and noun.table is not None:
            facts = reading.facts(noun.table.table)
            if is_text:
                return ColumnRef(noun.table.table, facts.display[0]) if len(facts.display) == 1 else None
            if len(facts.key) != 1 or kind_of(reading.schema.column(noun.table.table, facts.key[0])) != "number":
                return None
            return ColumnRef(noun.table.table, facts.key[0])
        kinds = ("text", "other") if is_text else ("number", "text")
        link = reading.pick(index, lambda link: reading.kind(link) in kinds)
        return ref(link) if link is not None else None

    def _booleans(self) -> None:
        reading = self._reading
        for index in range(len(reading)):
            noun = reading.noun(index)
            if noun is None or noun.is_value or noun.is_table or noun.column is None:
                continue
            link = noun.column
            before = reading.beside(index, -1)
            grouped = before is not None and reading.marks[before].means("each", "by")
            if not grouped and reading.facts(link.table).deleted == link.column and self._deleted_rows(index, link):
                continue
            codes = flag_codes(reading.column_of(link)) if not link.derived else None
            if (codes is None and reading.kind(link) != "boolean") or grouped:
                continue
            operator = self._reading.negated(index, "true")
            reading.use(index)
            if codes is None:
                self.found.conditions.append(Condition(ref(link), operator))
            else:
                self.found.conditions.append(Condition(ref(link), "=", (codes[operator == "false"],)))
            if reading.facts(link.table).deleted == link.column:
                self.found.with_deleted.add(link.table)

    def _deleted_rows(self, index: int, link: Link) -> bool:
        """Reads `deleted employees` where a time or a number marks what is deleted; returns whether it did."""
        kind = self._reading.kind(link)
        if kind not in ("date", "timestamp", "number"):
            return False
        operator = self._reading.negated(index, "not null" if kind != "number" else "!=")
        operands = (Decimal(0),) if kind == "number" else ()
        self._reading.use(index)
        self.found.conditions.append(Condition(ref(link), operator if operator != "in" else "=", operands))
        self.found.with_deleted.add(link.table)
        return True

    def merge_alternatives(self) -> None:
        """Joins conditions on values that no row has at once, because either is meant: `男读者和女读者`."""
        kept: list[Condition] = []
        for condition in self.found.conditions:
            other = next((one for one in kept if _are_alternatives(one, condition)), None)
            if other is None:
                kept.append(condition)
                continue
            operands = tuple(dict.fromkeys((*other.operands, *condition.operands)))
            kept[kept.index(other)] = Condition(condition.column, "in", operands)
            self.found.compared.append(condition.column)
        self.found.conditions = kept


def _are_alternatives(first: Condition, second: Condition) -> bool:
    operators = {first.operator, second.operator}
    return first.column == second.column and operators <= {"=", "in"}


_LACKS = frozenset(listed("没有 没 无 没有任何 从没有 从来没有 no without lack lacks lacking"))
_WHOLE_VALUE = 0.8
_BELOW = frozenset(listed("下属 下属的 下级 下辖 旗下"))
_NEGATION_SKIP = ("noise", "of", "unit", "cmp", "list", "with", "from", "verb", "to")  # `to` is the sign of "non-cash"
