"""What patterns of values give: stored values, flags, identities and texts as conditions."""

from dataclasses import replace

from rules.query.query import OPPOSITE, ColumnRef, Condition, Operator, ref
from rules.reading.parts import Parts
from rules.reading.words import Item, Match
from rules.schema.facts import flag_codes, kind_of
from rules.words import WORDS

_WHOLE_VALUE = 0.8
_WHICH = frozenset(WORDS.both("questions.which"))
_LACKS = frozenset(WORDS.both("questions.lacks"))
_HAS = WORDS.chinese.text("questions.has")


def values(match: Match, via: str | None = None) -> Parts | None:
    """`vals` as a condition on their column."""
    item, question = match["vals"], match.question
    links = item.links
    if _lacks_figure(match) or _is_asked(match):
        return None
    key, first = links[0].table, links[0]
    unequal = any(one.symbol == "cmp" and one.arg == "!=" for one in match.items)
    operator: Operator = "=" if len(links) == 1 else "in"
    operator = OPPOSITE[operator] if match.is_negated != unequal else operator
    operands: tuple[str, ...] = tuple(str(link.value) for link in links)
    kind = question.kind(first)
    if kind == "boolean":
        operator, operands = ("false" if operator == "=" else "true"), ()
    elif kind in ("date", "timestamp"):
        operator, operands = ("null" if operator == "=" else "not null"), ()
    condition = Condition(replace(ref(first), via=via), operator, operands)
    deleted = (key,) if question.facts(key).deleted == first.column else ()
    flags = ("compare",) if item.joint == "compare" else (f"joined:{item.joint}",) if item.joint else ()
    places = [at for at in range(item.first, item.last + 1) if "val" in question.words[at].senses]
    said = tuple(zip(places, links, strict=False))
    return Parts(conditions=(condition,), with_deleted=deleted, flags=flags, said=said)


def value_or_flag(match: Match) -> Parts | None:
    """The condition of a match that has either."""
    return values(match) if match.get("vals") is not None else flag(match)


def _is_asked(match: Match) -> bool:
    """Whether a value is asked for as if it were a kind of thing: "which pilot", where no table has the pilots."""
    before = match.question.words[match.start - 1] if match.start else None
    after = match.beside(1)
    named = after is not None and bool(after.senses.keys() & {"tab", "tcol", "val", "flag"})
    return before is not None and before.mark.means("which") and before.text in _WHICH and not named


def _lacks_figure(match: Match) -> bool:
    """Whether a negated value stands before a figure, as in `没有新能源车流量的服务区`.

    It asks for things that have no such figure. A condition "another value" would find those that have others.
    """
    negation, after = match.get("not"), match.beside(1)
    lacks = negation is not None and negation.word.text in _LACKS
    return lacks and after is not None and "mcol" in after.senses and after.at == match.end


def possessed(match: Match) -> Parts | None:
    """`哪些服务区里有麦当劳`: 有 means "have" and not "contain" before a value."""
    whole = match["vals"].link.quality >= _WHOLE_VALUE
    word = match["like"]
    has = word.word.text.endswith(_HAS) or word.arg == "contains"
    return values(match) if has and whole and match["vals"].word.mark.literal is None else None


def labelled_values(match: Match) -> Parts | None:
    """Values beside the name of their column, or of a reference to whom they name: "whose manager is Ann"."""
    label, value = match["tcol|flag|mcol|dcol"].link, match["vals"].link
    if (label.table, label.column) == (value.table, value.column):
        return values(match)
    before = match["vals"].first > match["tcol|flag|mcol|dcol"].last
    between = match.question.words[match["tcol|flag|mcol|dcol"].last : match["vals"].first]
    if not before or any(word.mark.means("of") for word in between):
        return None  # "the manager of Ann" is not one whose manager is Ann
    for edge in match.question.facts(label.table).edges:
        if edge.columns == (label.column,) and edge.parent == value.table:
            return values(match, via=label.column)
    return None


def values_of_table(match: Match) -> Parts | None:
    """A table before the name of one of its rows: "customer Bob Jones", `订单HT2023010`."""
    link, table = match["vals"].link, match["tab"].link.table
    if link.table != table or not match.question.display(link) and link.column not in match.question.facts(table).key:
        return None
    parts = values(match)
    return parts + Parts(labels=(table,)) if parts is not None else None


def below_value(match: Match) -> Parts | None:
    """`总公司下属的部门`: rows below a named one, by the table's reference to itself."""
    link = match["vals"].link
    edges = [one for one in match.question.facts(link.table).edges if one.parent == one.child]
    if match["tab"].link.table != link.table or len(edges) != 1:
        return None
    return values(match, via=edges[0].columns[0])


def all_values(match: Match) -> Parts | None:
    """ "both A and B", `既有A又有B`."""
    first, *others = match.all("vals")
    if not others:
        return values(match) if first.joint == "and" else None
    (second,) = others
    if (first.link.table, first.link.column) == (second.link.table, second.link.column):
        whole = replace(first, last=second.last, links=(*first.links, *second.links), joint="and")
        return values(replace(match, items=(whole,)))
    sides = [values(replace(match, items=(one,))) for one in (first, second)]
    return sides[0] + sides[1] if sides[0] is not None and sides[1] is not None else None


def flag(match: Match) -> Parts | None:
    """A column of yes and no as a condition; `deleted` lets deleted rows take part."""
    link, question = match["flag"].link, match.question
    facts = question.facts(link.table)
    deleted = (link.table,) if facts.deleted == link.column else ()
    codes = flag_codes(question.column_of(link))
    if codes is not None:
        condition = Condition(ref(link), "=", (codes[match.is_negated],))
    elif question.kind(link) == "boolean":
        condition = Condition(ref(link), "false" if match.is_negated else "true")
    else:
        return None
    return Parts(conditions=(condition,), with_deleted=deleted)


def deletion(match: Match) -> Parts | None:
    """Words for deleted rows, where the column that marks them is a date."""
    link = match["dcol|tcol|mcol"].link
    if match.question.facts(link.table).deleted != link.column:
        return None
    operator: Operator = "null" if match.is_negated else "not null"
    return Parts(conditions=(Condition(ref(link), operator),), with_deleted=(link.table,))


def with_deleted(match: Match) -> Parts:
    """`包括已删除`: deleted rows of all tables that the question names take part."""
    return Parts(with_deleted=tuple(match.question.named_tables()))


def included(match: Match) -> Parts | None:
    """ "including unpaid ones": rows that the semantic file leaves out, by a column that its filter is about."""
    link = match["flag|vals"].link
    facts = match.question.facts(link.table)
    is_left_out = link.column in facts.filtered and facts.has_one_default
    return Parts(with_deleted=(link.table,)) if is_left_out else None


def identity(match: Match) -> Parts | None:
    """A number or quotation after a table or column that it identifies: `order 1001`, `编号为3的服务区`."""
    said, column, question = match["lit|num"], match.get("tcol", "mcol"), match.question
    number = said.word.mark.number if said.symbol == "num" else None
    if number is not None and not _may_identify(match, said, column):
        return None
    operands = (number.value if number is not None else str(said.word.mark.literal),)
    if column is not None:
        is_comparable = question.kind(column.link) in ("number", "text", "other")
        return Parts(conditions=(Condition(ref(column.link), "=", operands),)) if is_comparable else None
    table = match["tab"].link.table
    names = question.facts(table).display if number is None else question.facts(table).key
    if len(names) != 1 or (number is not None and kind_of(question.schema.column(table, names[0])) != "number"):
        return None
    condition = Condition(ColumnRef(table, names[0]), "=", operands)
    return Parts(conditions=(condition,), labels=(table,) if number is None else ())


def _may_identify(match: Match, number: Item, column: Item | None) -> bool:
    if "date" in number.word.senses and (column is None or number.first > column.last + 1):
        return False  # "orders in 2024"
    beyond = match.beside(1)
    if beyond is not None and beyond.mark.means("top", "super", "rank", "date_part"):
        return False
    # "list 20000 sales" asks for so many of them
    return column is None or number.first > column.first or "tab" not in column.word.senses


def text(match: Match) -> Parts | None:
    """`名称包含“湖”`, "whose name starts with A", "named Ann": a condition on a text."""
    said, word = match["lit|unk|num|val"], match["like|named"]
    value = said.links[0] if said.symbol == "val" else None
    contains = word.word.text.endswith(_HAS) or (word.arg == "contains" and match.get("tab") is not None)
    target = _text_column(match, said)
    if target is None:
        return None
    is_whole = value is not None and value.quality >= _WHOLE_VALUE and said.word.mark.literal is None
    if value is not None and is_whole and contains and (value.table, value.column) != (target.table, target.column):
        return None
    operator: Operator = "=" if word.symbol == "named" else word.arg  # type: ignore[assignment]
    operator = OPPOSITE.get(operator, operator) if match.is_negated else operator
    written = said.word.mark.literal if said.word.mark.literal is not None else said.word.mark.text
    table = match.get("tab")
    labels = (table.link.table,) if table is not None else ()
    return Parts(conditions=(Condition(target, operator, (written,)),), labels=labels)


def _text_column(match: Match, said: Item) -> ColumnRef | None:
    target = next((item for item in match.items if item is not said and item.symbol in ("tcol", "tab")), None)
    question = match.question
    if target is None:
        tables = {key for key in question.named_tables() if question.facts(key).display}
        table = tables.pop() if len(tables) == 1 else None
    elif target.symbol == "tcol":
        return ref(target.link) if question.kind(target.link) in ("text", "other") else None
    else:
        table = target.link.table
    display = question.facts(table).display if table is not None else ()
    return ColumnRef(table, display[0]) if table is not None and display else None
