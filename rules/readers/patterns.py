"""Reads conditions on texts: names that contain, begin or end with something, and things that are called something."""

from rules.query.conditions import Filters, ref
from rules.query.query import ColumnRef, Condition, Operator
from rules.readers.reading import Reading

_WHOLE_VALUE = 0.8


class PatternReader:
    """Turns words for LIKE and "named …" into conditions, and uses up their marks."""

    def __init__(self, reading: Reading, found: Filters) -> None:
        self._reading = reading
        self.found = found

    def read(self) -> None:
        """Reads every condition on a text."""
        reading = self._reading
        for index in list(reading.having("like", "named")):
            text = self._pattern_text(index)
            if text is None:
                self._contain(index)
                continue
            target = self._pattern_target(index)
            if target is None:
                continue
            if self._is_possession(index, text, target):
                reading.use(index)
                continue
            kind = reading.marks[index]
            operator: Operator = "=" if kind.means("named") else kind.arg  # type: ignore[assignment]
            operator = self._reading.negated(index, operator)
            reading.use(index, text)
            mark = reading.marks[text]
            stored = self._stored_text(text, target) if operator == "=" else None
            written = stored or (mark.literal if mark.literal is not None else mark.text)
            self.found.conditions.append(Condition(target, operator, (written,)))

    def _is_possession(self, index: int, text: int, target: ColumnRef) -> bool:
        """Whether 有 means "have" and not "contain": `哪些服务区里有麦当劳`, where 麦当劳 is a value elsewhere."""
        noun = self._reading.nouns[text]
        value = noun.value if noun is not None and noun.is_value else None
        if value is None or value.quality < _WHOLE_VALUE or self._reading.marks[text].literal is not None:
            return False
        return self._reading.marks[index].text.endswith("有") and (value.table, value.column) != (
            target.table,
            target.column,
        )

    def _contain(self, index: int) -> None:
        """Uses up a word for "contain" that is about no text: `orders that contain more than 3 items`."""
        after = self._reading.beside(index, 1, ("noise",))
        noun = self._reading.nouns[after] if after is not None else None
        tied = after is not None and (
            self._reading.marks[after].means("cmp") or (noun is not None and not noun.is_value)
        )
        if self._reading.marks[index].means("like") and tied:
            self._reading.use(index)

    def _stored_text(self, index: int, target: ColumnRef) -> str | None:
        noun = self._reading.nouns[index]
        for _, link in noun.values if noun else ():
            if (link.table, link.column) == (target.table, target.column):
                return None if link.is_exact and link.quality < _WHOLE_VALUE else link.value
        return None

    def _pattern_text(self, index: int) -> int | None:
        """Where the text of a LIKE stands: after its word, or before it in `以…开头`."""
        reading = self._reading
        steps = (-1,) if reading.is_chinese and reading.marks[index].arg in ("prefix", "suffix") else (1,)
        for step in steps:
            place = reading.free_beside(index, step, ("noise", "of", "cmp", "unit"))
            if place is None:
                continue
            mark, noun = reading.marks[place], reading.nouns[place]
            if (
                mark.literal is not None
                or mark.is_unknown
                or (len(mark.text) == 1 and mark.text.isascii() and mark.text.isalpha())
                or (mark.number is not None and abs(place - index) == 1)
                or (noun is not None and noun.is_value)
            ):
                if step == -1 and place > 0 and reading.marks[place - 1].means("by"):
                    reading.use(place - 1)
                return place
        return None

    def _pattern_target(self, index: int) -> ColumnRef | None:
        """The column of a LIKE: a column of texts that is named, or the name of a table that is named."""
        reading = self._reading
        for step in (-1, 1):
            place = reading.find(index + step, step, lambda at: self._names_text(at))
            noun = reading.noun(place)
            if place is None or noun is None:
                continue
            owner = reading.named_thing(place)
            if owner is not None:
                reading.use(place)
                return ColumnRef(owner, reading.facts(owner).display[0])
            if noun.is_table and noun.table is not None:
                display = reading.facts(noun.table.table).display
                if display:
                    return ColumnRef(noun.table.table, display[-1] if len(display) == 1 else display[0])
                continue
            link = reading.pick(place, lambda link: reading.kind(link) in ("text", "other"))
            if link is not None:
                if step == -1:
                    reading.use(place)
                return ref(link)
        return None

    def _names_text(self, index: int) -> bool:
        noun = self._reading.nouns[index]
        if noun is None or noun.is_value:
            return False
        if noun.is_table:
            return True
        return any(self._reading.kind(link) in ("text", "other") for _, link in noun.columns)
