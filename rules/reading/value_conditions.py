"""Makes parts of patterns of values: stored values, flags, identities and texts as conditions."""

from dataclasses import replace

from common.meanings import TableKey
from rules.query.query import OPPOSITE, ColumnRef, Condition, Operator, ref
from rules.reading.parts import Parts
from rules.reading.words import Match, MatchedItem, QuestionWords
from rules.schema.links import Link, column_link
from rules.schema.table_facts import flag_codes
from rules.words import WORDS

_WHOLE_VALUE = 0.8  # a word of at least this quality is the whole of a stored value
_WHICH = frozenset(WORDS.both("questions.which"))
_LACKS = frozenset(WORDS.both("questions.lacks"))
_NEVER = frozenset(WORDS.both("questions.never"))
_HAS = WORDS.chinese.text("questions.has")
_NAMES = frozenset(("tab", "tcol", "val", "flag"))  # symbols of words that name something


def values(match: Match, via: str | None = None) -> Parts | None:
    """Restrict rows to stored values.

    Args:
        via: the referencing column, where the values are of a table in a role.
    """
    item = match["vals"]
    question = match.question
    if _lacks_figure(match) or _is_asked(match) or _is_never_met(match):
        return None

    condition = _value_condition(match, item, via)
    table = item.link.table
    column = item.link.column
    is_of_deletion = question.facts(table).deleted == column
    places = [at for at in range(item.first, item.last + 1) if "val" in question.words[at].senses]
    return Parts(
        conditions=(condition,),
        with_deleted=(table,) if is_of_deletion else (),
        flags=_joint_flags(item.joint),
        said=tuple(zip(places, item.links, strict=False)),
    )


def _value_condition(match: Match, item: MatchedItem, via: str | None) -> Condition:
    column = replace(ref(item.link), via=via)
    kind = match.question.kind(item.link)
    operator: Operator = "=" if len(item.links) == 1 else "in"
    says_unequal = any(one.symbol == "cmp" and one.arg == "!=" for one in match.items)
    if match.is_negated != says_unequal:
        operator = OPPOSITE[operator]
    if kind == "boolean":
        return Condition(column, "false" if operator == "=" else "true")
    if kind in ("date", "timestamp"):
        return Condition(column, "null" if operator == "=" else "not null")

    operands = tuple(str(link.value) for link in item.links)
    return Condition(column, operator, operands)


def _joint_flags(joint: str) -> tuple[str, ...]:
    """Return the flags of how several values are joined: compared, by "and", by "or"."""
    if not joint:
        return ()

    if joint == "compare":
        return ("compare",)

    return (f"joined:{joint}",)


def value_or_flag(match: Match) -> Parts | None:
    """Restrict rows by the value or the flag of a match."""
    if match.get("vals") is not None:
        return values(match)

    return flag(match)


def _is_asked(match: Match) -> bool:
    """Tell whether a value is asked for like a kind of thing: "which pilot", without a table."""
    before = match.question.word_at(match.start - 1)
    if before is None or before.text not in _WHICH or not before.mark.means("which"):
        return False

    after = match.beside(1)
    return after is None or after.senses.keys().isdisjoint(_NAMES)


def _lacks_figure(match: Match) -> bool:
    """Tell whether a negated value stands before a figure, as in `没有新能源车流量的服务区`.

    It asks for things that have no such figure. A condition "another value" would find those that
    have others.
    """
    negation = match.get("not")
    if negation is None or negation.word.text not in _LACKS:
        return False

    after = match.beside(1)
    if after is None or after.at != match.end:
        return False

    return "mcol" in after.senses


def _is_never_met(match: Match) -> bool:
    """Tell whether things are asked for that never had to do with another: "never been to Leeds".

    A condition "another value" would find those that had to do with others.
    """
    negation = match.get("not")
    if negation is None or negation.word.text not in _NEVER:
        return False

    table = match["vals"].link.table
    return match.question.facts(table).is_entity and table not in match.question.named_tables()


def possessed(match: Match) -> Parts | None:
    """Restrict rows to a value that they have, where 有 does not mean "contain": `有麦当劳`."""
    value = match["vals"]
    word = match["like"]
    if value.word.mark.literal is not None or value.link.quality < _WHOLE_VALUE:
        return None

    means_have = word.arg == "contains" or word.word.text.endswith(_HAS)
    return values(match) if means_have else None


def labelled_values(match: Match) -> Parts | None:
    """Restrict rows to values beside the name of their column, or of a reference to their table.

    "whose manager is Ann" names a reference.
    """
    label = match["tcol|flag|mcol|dcol"]
    value = match["vals"]
    if (label.link.table, label.link.column) == (value.link.table, value.link.column):
        return values(match)

    between = match.question.words[label.last : value.first]
    if value.first <= label.last or any(word.mark.means("of") for word in between):
        # "the manager of Ann" is not one whose manager is Ann
        return None

    for edge in match.question.facts(label.link.table).edges:
        if edge.columns == (label.link.column,) and edge.parent == value.link.table:
            return values(match, via=label.link.column)

    return None


def values_of_table(match: Match) -> Parts | None:
    """Restrict rows to one that is named after its table: "customer Bob Jones"."""
    link = match["vals"].link
    table = match["tab"].link.table
    if link.table != table:
        return None

    is_key = link.column in match.question.facts(table).key
    if not is_key and not match.question.display(link):
        return None

    parts = values(match)
    if parts is not None:
        return parts + Parts(labels=(table,))

    return None


def below_value(match: Match) -> Parts | None:
    """Restrict rows to those below a named one: `总公司下属的部门`.

    The table has to refer to itself.
    """
    link = match["vals"].link
    edges = [edge for edge in match.question.facts(link.table).edges if edge.parent == edge.child]
    if match["tab"].link.table != link.table or len(edges) != 1:
        return None

    return values(match, via=edges[0].columns[0])


def all_values(match: Match) -> Parts | None:
    """Restrict rows to those with all of several values: "both A and B", `既有A又有B`."""
    first, *others = match.all("vals")
    if not others:
        return values(match) if first.joint == "and" else None

    (second,) = others
    if (first.link.table, first.link.column) == (second.link.table, second.link.column):
        links = (*first.links, *second.links)
        whole = replace(first, last=second.last, links=links, joint="and")
        return values(replace(match, items=(whole,)))

    of_first = values(replace(match, items=(first,)))
    of_second = values(replace(match, items=(second,)))
    if of_first is None or of_second is None:
        return None

    return of_first + of_second


def flag(match: Match) -> Parts | None:
    """Restrict rows by a column of yes and no.

    Where it marks deleted rows, these take part.
    """
    link = match["flag"].link
    question = match.question
    codes = flag_codes(question.column_of(link))
    if codes is not None:
        condition = Condition(ref(link), "=", (codes[match.is_negated],))
    elif question.kind(link) == "boolean":
        condition = Condition(ref(link), "false" if match.is_negated else "true")
    else:
        return None

    is_of_deletion = question.facts(link.table).deleted == link.column
    return Parts(
        conditions=(condition,),
        with_deleted=(link.table,) if is_of_deletion else (),
    )


def deletion(match: Match) -> Parts | None:
    """Restrict rows to deleted ones, where the column that marks them is a date."""
    link = match["dcol|tcol|mcol"].link
    if match.question.facts(link.table).deleted != link.column:
        return None

    operator: Operator = "null" if match.is_negated else "not null"
    return Parts(conditions=(Condition(ref(link), operator),), with_deleted=(link.table,))


def with_deleted(match: Match) -> Parts:
    """Let deleted rows of all named tables take part: `包括已删除`."""
    return Parts(with_deleted=tuple(match.question.named_tables()))


def included(match: Match) -> Parts | None:
    """Let rows take part that the semantic file leaves out: "including unpaid ones".

    The column has to be one that its filter is about.
    """
    link = match["flag|vals"].link
    facts = match.question.facts(link.table)
    is_left_out = link.column in facts.filtered and facts.has_one_default
    return Parts(with_deleted=(link.table,)) if is_left_out else None


def identity(match: Match) -> Parts | None:
    """Restrict rows to the one that a number or quotation identifies: `order 1001`.

    It stands beside the table or a column: `编号为3的服务区`.
    """
    item = match["lit|num"]
    column = match.get("tcol", "mcol")
    question = match.question
    number = item.word.mark.number if item.symbol == "num" else None
    if number is not None and not _may_identify(match, item, column):
        return None

    operand = number.value if number is not None else str(item.word.mark.literal)
    if column is not None:
        if question.kind(column.link) not in ("number", "text", "other"):
            return None
        if column.link.quality < _WHOLE_VALUE and not _may_be_key(match, column.link):
            return None

        return Parts(conditions=(Condition(ref(column.link), "=", (operand,)),))

    table = match["tab"].link.table
    facts = question.facts(table)
    names = facts.key if number is not None else facts.display
    if len(names) != 1:
        return None
    if number is not None and not _may_be_key(match, column_link(table, names[0])):
        return None

    condition = Condition(ColumnRef(table, names[0]), "=", (operand,))
    return Parts(conditions=(condition,), labels=(table,) if number is None else ())


def _may_be_key(match: Match, link: Link) -> bool:
    """Tell whether a number may be that of a row: "track 5", not "track 1.99" or "tracks costing
    5".
    """
    number = match.get("num")
    if number is None or link.column not in match.question.facts(link.table).key:
        return number is None

    value = number.word.mark.number
    is_whole = value is not None and value.value == value.value.to_integral_value()
    before = match.question.words[number.first - 1]
    is_beside = before.mark.means("cmp", "of") or before.noun is not None
    return is_whole and is_beside and match.question.kind(link) == "number"


def _may_identify(match: Match, number: MatchedItem, column: MatchedItem | None) -> bool:
    """Tell whether a number identifies a row, and is no year and no number of rows."""
    is_apart = column is None or number.first > column.last + 1
    if is_apart and "date" in number.word.senses:
        # "orders in 2024"
        return False
    if match.is_before("top", "super", "rank", "date_part"):
        return False

    is_behind = column is None or number.first > column.first
    # "list 20000 sales" asks for so many of them
    return is_behind or column is None or "tab" not in column.word.senses


def text(match: Match) -> Parts | None:
    """Restrict a text: `名称包含“湖”`, "whose name starts with A", "named Ann"."""
    item = match["lit|unk|num|val"]
    word = match["like|named"]
    target = _text_column(match, item)
    if target is None or _is_value_of_another(match, item, target):
        return None

    operator: Operator = "=" if word.symbol == "named" else word.arg  # type: ignore[assignment]
    if match.is_negated:
        operator = OPPOSITE.get(operator, operator)

    mark = item.word.mark
    table = match.get("tab")
    written = mark.literal if mark.literal is not None else mark.text
    condition = Condition(target, operator, (written,))
    labels = (table.link.table,) if table is not None else ()
    return Parts(conditions=(condition,), labels=labels)


def _is_value_of_another(match: Match, item: MatchedItem, target: ColumnRef) -> bool:
    """Tell whether a text is a stored value of another column, which rows "have" (有)."""
    if item.symbol != "val" or item.word.mark.literal is not None:
        return False

    word = match["like|named"]
    value = item.link
    means_have = word.word.text.endswith(_HAS)
    contains = word.arg == "contains" and match.get("tcol") in (None, item)
    if not means_have and not contains:
        return False

    is_whole = value.quality >= _WHOLE_VALUE
    return is_whole and (value.table, value.column) != (target.table, target.column)


def _text_column(match: Match, item: MatchedItem) -> ColumnRef | None:
    """Return the column of a text: the named one, else the name of the only table."""
    question = match.question
    target = next((one for one in match.all("tcol", "tab") if one is not item), None)
    if target is None:
        named = {key for key in question.named_tables() if question.facts(key).display}
        if len(named) == 1:
            return _name_column(question, named.pop())

        return None

    if target.symbol == "tab":
        return _name_column(question, target.link.table)

    is_text = question.kind(target.link) in ("text", "other")
    return ref(target.link) if is_text else None


def _name_column(question: QuestionWords, table: TableKey) -> ColumnRef | None:
    display = question.facts(table).display
    return ColumnRef(table, display[0]) if display else None
