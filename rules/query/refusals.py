"""Refusals: why the rules write no statement, in words that the user can act on.

The rules refuse wherever they would have to answer another question than the one that was asked.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial

from common.meanings import TableKey
from common.text import Text
from common.values import FailureReason
from knowledge.language.cutting import has_han
from knowledge.language.inflection import plural
from knowledge.language.spelling import alike, closest, did_you_mean
from knowledge.language.spoken_names import called
from rules.linking.mark import Mark
from rules.query.pending import Choice, Missing, Pending
from rules.schema.lexicon import Lexicon
from rules.schema.table_facts import Facts
from rules.words.limits import MOST_ATOMS, MOST_CHARS, MOST_MARKS, is_too_long
from rules.words.speech import Speech


class Refusal(Exception):
    """Raised where the rules can't answer; `text` tells the user why, and what would help.

    Attributes:
        words: the words of the question that cause the refusal.
        choices: the things that these words may mean, or examples of what the user may add.
        missing: the one thing that, once the user says it, makes the question complete.
        pending: the question with what is missing, once it is known which question that is.
    """

    def __init__(
        self,
        reason: FailureReason,
        text: Text,
        *,
        words: Iterable[str] = (),
        choices: Iterable[Text] = (),
        missing: Missing | None = None,
        pending: Pending | None = None,
    ) -> None:
        super().__init__(text.en)
        self.reason: FailureReason = reason
        self.text = text
        self.words = tuple(words)
        self.choices = tuple(choices)
        self.missing = missing
        self.pending = pending

    def copy(self, pending: Pending | None = None) -> "Refusal":
        """Return the same refusal, as it was before it was raised, for the question `pending`."""
        return Refusal(
            self.reason,
            self.text,
            words=self.words,
            choices=self.choices,
            missing=self.missing,
            pending=pending,
        )


_NOT_A_WRONG_ONE = Text(
    "，为避免答非所问，没有生成SQL",
    ", so no SQL was written rather than a wrong one",
)
# Patterns of the advice that a refusal ends with.
_ADVICE = Text(
    "。请(?!说明)[^。]*。?$",
    r"\. Please (?!say)[^.]*\.?$",
)
_MOST_FIGURES = 4  # named as examples
_MOST_STATES = 6
_MOST_TABLES = 6  # named where nothing of the question is known
_LEAST_LIKENESS = 0.72  # of names that are suggested
_SHARED_CHARACTERS = 2  # at least, of Chinese names that are suggested
_UNSUPPORTED = {
    "why": Text("解释原因", "explain why something is so"),
    "forecast": Text("预测或发现异常", "forecast, estimate or find anomalies"),
    "statistics": Text(
        "这类统计（相关性、回归、众数等）",
        "compute this kind of statistics (correlation, regression, mode, …)",
    ),
    "calendar": Text("区分节假日、白天和夜间", "tell holidays, or day and night, apart"),
    "growth": Text("计算这种比率或变化", "compute this kind of ratio or change"),
    "set": Text(
        "处理“只有”“相同”“第几名”这类条件",
        'handle conditions such as "only", "same", "second highest"',
    ),
}


# Parts of speech of words that name nothing.
_NO_NAMES: tuple[Speech, ...] = ("courtesy", "decisive", "particle", "pronoun")
_not_done = partial(Refusal, "unknown_generation_failure")
_not_there = partial(Refusal, "missing_database_info")
_unclear = partial(Refusal, "ambiguous_question")


def unsupported(kind: str, word: str) -> Refusal:
    """Refuse a construct that rules don't cover.

    Args:
        kind: the argument of the `unsupported` intent.
        word: the word of the question that asks for it.
    """
    what = _UNSUPPORTED[kind]
    return _not_done(
        Text(
            f"“{word}”：离线规则无法{what.zh}。"
            "请换一种问法，例如按时间或类别分组查询具体数字，或配置大模型后再试。",
            f'"{word}": the offline rules can\'t {what.en}. Ask for the figures by period or group '
            "instead, or configure a language model.",
        )
    )


def unknown_words(words: Sequence[str], lexicon: Lexicon) -> Refusal:
    """Refuse words of the question that name nothing in the database."""
    quoted = in_quotes(words)
    near = similar_names(words, lexicon)
    if near:
        hint = Text(f"您是不是要找：{'、'.join(near)}？", f"Did you mean: {', '.join(near)}?")
    else:
        hint = _table_hint(lexicon)

    return _not_there(
        Text(
            f"数据库中没有找到与{quoted.zh}对应的表、字段或取值。{hint.zh}",
            f"Nothing in the database is called {quoted.en}. {hint.en}",
        ),
        words=words,
    )


def unknown_parts(marks: Sequence[Mark], lost: Iterable[int]) -> list[str]:
    """Return the parts of a question that may be names of something unknown.

    Function words name nothing. A single Chinese character is only a part of a word, so it is
    said together with those that it stands beside (复购率, 退货率).

    Args:
        marks: all of the question, in their order.
        lost: the places of those without a meaning.
    """
    parts: dict[str, None] = {}
    unknown_places = [at for at in lost if marks[at].is_unknown]
    done = -1
    for at in sorted(unknown_places):
        if at <= done or marks[at].speech in _NO_NAMES:
            continue

        first = last = at
        while _is_beside(marks, last) and last + 1 in unknown_places:
            last += 1

        is_single = sum(len(mark.text) for mark in marks[first : last + 1]) == 1
        if is_single and has_han(marks[at].text) and first and _is_beside(marks, first - 1):
            first -= 1

        done = last
        parts["".join(mark.text for mark in marks[first : last + 1])] = None

    return list(parts)


def _is_beside(marks: Sequence[Mark], at: int) -> bool:
    """Tell whether a Chinese word follows directly on the Chinese one at this place."""
    if at + 1 == len(marks):
        return False

    first, second = marks[at], marks[at + 1]
    are_chinese = has_han(first.text) and has_han(second.text)
    return are_chinese and first.end == second.start


def nobody_called(name: str, choices: Sequence[str]) -> Refusal:
    """Refuse a name that nobody has; `choices` are stored names that resemble it."""
    return _not_there(did_you_mean(name, choices))


def similar_names(words: Sequence[str], lexicon: Lexicon, count: int = 3) -> list[str]:
    """Return at most `count` names of tables and columns that resemble one of the words.

    Where there are none, return stored names of people and things that do.
    """
    names: dict[str, None] = {}
    for word in words:
        names.update(dict.fromkeys(_names_like(word, lexicon, count)))

    return list(names)[:count] or _similar_values(words, lexicon)[:count]


def _names_like(word: str, lexicon: Lexicon, count: int) -> list[str]:
    names = lexicon.suggested.names_like(word.lower())
    similar = closest(word.lower(), names, count, _LEAST_LIKENESS)
    if not has_han(word):
        return similar

    others = [name for name in names if name not in similar]
    sharing = [name for name in others if len(set(name) & set(word)) >= _SHARED_CHARACTERS]
    return [*similar, *sharing[:count]]


def _similar_values(words: Sequence[str], lexicon: Lexicon) -> list[str]:
    """Return stored names that a look-up has found for the words, and others that resemble one."""
    values = []
    for words_of_value, value in lexicon.offered:
        if any(word in words_of_value for word in words):
            values.append(value)

    for word in words:
        for column in lexicon.people:
            values += alike(word, column.values)

    return values


def _table_hint(lexicon: Lexicon) -> Text:
    """Name the first tables of the catalogue in a sentence."""
    everything = lexicon.schema.catalog.tables
    tables = [table for table in everything if table.kind == "table"] or everything
    named = enumerated([called(table) for table in tables[:_MOST_TABLES]])
    return Text(f"可以查询的内容有：{named.zh}。", f"There is data about: {named.en}.")


def in_quotes(words: Iterable[str]) -> Text:
    """Join words of the question, each in quotation marks."""
    words = tuple(words)
    return Text("、".join(f"“{word}”" for word in words), ", ".join(f'"{word}"' for word in words))


def enumerated(names: Iterable[Text]) -> Text:
    """Join several names by commas."""
    names = tuple(names)
    return Text("、".join(name.zh for name in names), ", ".join(name.en for name in names))


def ambiguous_column(
    word: str | Text, choices: Sequence[tuple[TableKey, str]], lexicon: Lexicon
) -> Refusal:
    """Refuse a word that names several columns equally well."""
    word = _in_both_languages(word)
    named = enumerated(_described(lexicon, key, column) for key, column in choices)
    columns = [lexicon.schema.table(key).column(column) for key, column in choices]
    return _unclear(
        Text(
            f"“{word.zh}”可以指多个字段：{named.zh}。请说明是哪一个。",
            f'"{word.en}" can mean several columns: {named.en}. Please say which one.',
        ),
        words=dict.fromkeys((word.zh, word.en)),
        choices=[called(column) for column in columns if column is not None],
        missing=Missing("choice", tuple(choices)),
    )


def _in_both_languages(name: str | Text) -> Text:
    return name if isinstance(name, Text) else Text(name, name)


def several_people(word: str, tables: Sequence[TableKey], lexicon: Lexicon) -> Refusal:
    """Refuse a word for "who" where several kinds of people have to do with the rows."""
    kinds = [called(lexicon.schema.table(key)) for key in tables]
    named = enumerated(kinds)
    return _unclear(
        Text(
            f"“{word}”可以指：{named.zh}。请说明是哪一个。",
            f'"{word}" can be one of: {named.en}. Please say which.',
        ),
        words=(word,),
        choices=[Text(f"哪个{kind.zh}", f"which {kind.en}") for kind in kinds],
        missing=Missing("choice", tuple((key, None) for key in tables)),
    )


def several_things(choices: Sequence[Choice], lexicon: Lexicon) -> Refusal:
    """Refuse a question whose answer may have a row for each of several things or groups."""
    kinds = [_called_thing(lexicon, key, column) for key, column in choices]
    listed = Text("、".join(kind.zh for kind in kinds), " or for ".join(kind.en for kind in kinds))
    return _unclear(
        Text(
            f"这个问题可以按不同的对象回答：{listed.zh}。请说明要看哪一个。",
            f"The question can be answered for {listed.en}. Please say which one.",
        ),
        choices=kinds,
        missing=Missing("choice", tuple(choices)),
    )


def _called_thing(lexicon: Lexicon, key: TableKey, column: str | None) -> Text:
    table = lexicon.schema.table(key)
    found_column = table.column(column) if column is not None else None
    return called(found_column if found_column is not None else table)


def ambiguous_way(table: TableKey, choices: Sequence[Choice], lexicon: Lexicon) -> Refusal:
    """Refuse a table to which several references lead, or other tables."""
    named = enumerated(_described(lexicon, key, column) for key, column in choices)
    target = called(lexicon.schema.table(table))
    return _unclear(
        Text(
            f"与“{target.zh}”有多种关联方式：{named.zh}。请说明按哪一种。",
            f'There are several ways to relate to "{target.en}": {named.en}. Please say which one.',
        ),
        missing=Missing("choice", tuple(choices)),
    )


def _described(lexicon: Lexicon, key: TableKey, column: str | None) -> Text:
    """Return a column's label with its database name; a table's label where it is None."""
    if not column:
        return called(lexicon.schema.table(key))

    found_column = lexicon.schema.table(key).column(column)
    labels = called(found_column) if found_column is not None else Text(column, column)
    place = f"{key[1]}.{column}"
    return Text(_with_place(labels.zh, place), _with_place(labels.en, place))


def _with_place(label: str, place: str) -> str:
    if has_han(label):
        return f"{label}（{place}）"

    return f"{label} ({place})"


def missing_measure(entity: str | Text, facts: Facts | None = None) -> Refusal:
    """Refuse a ranking that does not say by which figure.

    Args:
        facts: what is known of the table whose figures are named as examples.
    """
    entity = _in_both_languages(entity)
    choices = (
        [] if facts is None else [called(measure) for measure in facts.measures[:_MOST_FIGURES]]
    )
    examples = Text("", "")
    if choices:
        named = enumerated(choices)
        examples = Text(f"，例如：{named.zh}", f", for example: {named.en}")

    return _unclear(
        Text(
            f"请说明“{entity.zh}”按什么指标排序{examples.zh}。",
            f'Please say by which figure "{entity.en}" should be ranked{examples.en}.',
        ),
        choices=choices,
        missing=Missing("figure", ((facts.table.key, None),) if facts is not None else ()),
    )


def number_of(counted: Text) -> Text:
    """Return what the number of some things is called."""
    return Text(f"{counted.zh}数量", f"number of {plural(counted.en)}")


def which_figure(word: str, choices: Sequence[Text], table: TableKey) -> Refusal:
    """Ask by which figure "sold the most" ranks: the number of events, their amount, or another."""
    named = Text(
        "、".join(choice.zh for choice in choices), " or ".join(choice.en for choice in choices)
    )
    return _unclear(
        Text(
            f"“{word}”可以指：{named.zh}。请说明是哪一个。",
            f'"{word}" can mean the {named.en}. Please say which one.',
        ),
        words=(word,),
        choices=choices,
        missing=Missing(
            "figure", ((table, None),), figures=tuple((choice.zh, choice.en) for choice in choices)
        ),
    )


def unused_words(words: Sequence[str]) -> Refusal:
    """Refuse words that are known but have no place in the statement."""
    quoted = Text("某些部分", "asking for this")
    if words:
        quoted = Text("".join(f"“{word}”" for word in words), in_quotes(words).en)

    return _not_done(
        Text(
            f"没能理解问题中的{quoted.zh}所起的作用{_NOT_A_WRONG_ONE.zh}。"
            "请把问题拆开或换一种说法。",
            f"The part {quoted.en} of the question could not be placed{_NOT_A_WRONG_ONE.en}. "
            "Please split or rephrase the question.",
        ),
        words=words,
    )


def unclear_state(words: Sequence[str], table: Text, column: Text) -> Refusal:
    """Ask what words such as "now" mean where a column tells until when something holds."""
    quoted = in_quotes(words)
    return _unclear(
        Text(
            f"不清楚{quoted.zh}是否与“{column.zh}”有关：请说明，例如“{column.zh}为空的{table.zh}”，"
            f"或者去掉{quoted.zh}来问全部{table.zh}。",
            f'It is not clear whether {quoted.en} is about "{column.en}". Please say so, as in '
            f'"{table.en} without {column.en}", or leave it out to ask about all {table.en}.',
        ),
        words=(),
    )


def unclear_status(words: Sequence[str], column: Text, others: Sequence[str]) -> Refusal:
    """Ask in which state things are that are not, or no longer, in those of the words.

    Args:
        others: the other states that are stored.
    """
    quoted, listed = in_quotes(words), in_quotes(others[:_MOST_STATES])
    return _unclear(
        Text(
            f"不清楚不处于{quoted.zh}的是指“{column.zh}”中的哪些：{listed.zh}。请直接说出这些取值。",
            f'It is not clear which states of "{column.en}" are meant by what is not {quoted.en}: '
            f"{listed.en}. Please name them.",
        ),
        words=(),
    )


def missing_year(word: str) -> Refusal:
    """Refuse a month or quarter without its year."""
    return _unclear(
        Text(
            f"“{word}”是哪一年的？请补充年份。",
            f'Which year is "{word}" in? Please add the year.',
        ),
        words=(word,),
        choices=years_of(word),
        missing=Missing("year", word=word),
    )


def years_of(word: str) -> tuple[Text, ...]:
    """Say the month or quarter `word` of each year that is likely meant."""
    return Text(f"今年{word}", f"{word} this year"), Text(f"去年{word}", f"{word} last year")


def no_date_column(what: Text) -> Refusal:
    """Refuse a period for rows that have no date."""
    return _not_there(
        Text(
            f"“{what.zh}”没有可用于时间筛选的日期字段。",
            f'"{what.en}" has no date column to apply the period to.',
        )
    )


def too_long() -> Refusal:
    """Refuse a question that has more parts than rules read, or takes them too much time."""
    return _not_done(
        Text(
            f"问题太长，或者部分太多：离线规则最多读取{MOST_MARKS}个词、{MOST_CHARS}个字符。"
            "请缩短问题，或拆成几个较短的问题。",
            "The question is too long or has too many parts: the offline rules read up to "
            f"{MOST_MARKS} words and {MOST_CHARS} characters. "
            "Please shorten it, or ask several shorter questions.",
        )
    )


def refuse_too_long(question: str, marks: Sequence[Mark]) -> None:
    """Refuse a question that has more than the rules read, before its marks are linked.

    Raises:
        Refusal: it is too long.
    """
    if has_too_many_parts(question, marks):
        raise too_long()


def has_too_many_parts(question: str, marks: Sequence[Mark]) -> bool:
    """Tell whether a question, or its marks, are more than the rules read."""
    if is_too_long(question) or len(marks) > MOST_MARKS:
        return True

    return bool(marks) and marks[-1].end > MOST_ATOMS


def not_understood(lexicon: Lexicon) -> Refusal:
    """Refuse a question that names nothing of the database."""
    hint = _table_hint(lexicon)
    return _not_there(
        Text(
            f"没有从问题中识别出要查询的内容。{hint.zh}",
            f"The question names nothing in the database. {hint.en}",
        )
    )


def not_connected(first: Text, second: Text) -> Refusal:
    """Refuse two tables that nothing relates."""
    return _not_there(
        Text(
            f"数据库中没有“{first.zh}”与“{second.zh}”之间的关联关系。",
            f'Nothing in the database relates "{first.en}" to "{second.en}".',
        )
    )


def not_combinable() -> Refusal:
    """Refuse tables that can't be joined without counting rows several times."""
    return _not_done(
        Text(
            "这个问题涉及的数据无法在不重复计算的情况下合并成一条查询。请把问题拆成几个分别提问。",
            "The data this question needs can't be combined in one query without counting rows "
            "twice. Please ask for the parts separately.",
        )
    )


def beyond_grain(metric: Text, allowed: Sequence[Text]) -> Refusal:
    """Refuse a metric by a group for which it is not defined; it is for the `allowed` ones."""
    groups = enumerated(allowed)
    return _not_done(
        Text(
            f"“{metric.zh}”只能按以下各项分组：{groups.zh}。",
            f'"{metric.en}" can be grouped only by these: {groups.en}.',
        )
    )


def not_carried(name: Text, what: Text) -> Refusal:
    """Refuse groups of the earlier question that mean nothing for the new figure."""
    return _not_done(
        Text(f"“{what.zh}”不能按“{name.zh}”分组", f'"{what.en}" can\'t be grouped by "{name.en}"')
    )


def nothing_to_change(what: Text) -> Refusal:
    """Refuse a follow-up that changes something which the earlier question does not have."""
    return _unclear(Text(f"上一个问题没有{what.zh}", f"the previous question has no {what.en}"))


def not_continued(refusal: Refusal, question: str) -> Refusal:
    """Refuse a follow-up to `question`, for the grounds of `refusal`."""
    why = grounds(refusal)
    return Refusal(
        refusal.reason,
        Text(
            f"这句话被理解为接着“{question}”的追问，但没有生成SQL：{why.zh}。请把问题说完整。",
            f'This was understood as following up on "{question}", but no SQL was written: '
            f"{why.en}. Please ask the whole question.",
        ),
        missing=refusal.missing,
    )


def grounds(refusal: Refusal) -> Text:
    """Return the text of a refusal without the advice at its end and without the last full stop."""
    zh = re.sub(_ADVICE.zh, "", refusal.text.zh).removesuffix(_NOT_A_WRONG_ONE.zh)
    en = re.sub(_ADVICE.en, "", refusal.text.en).removesuffix(_NOT_A_WRONG_ONE.en)
    return Text(zh.rstrip("。"), en.rstrip("."))


def not_by_rules(question: str) -> Refusal:
    """Refuse a follow-up to `question`, of whose answer the rules don't know the query.

    A model or pasted SQL gave that answer, or the database has changed since.
    """
    return _unclear(
        Text(
            f"离线规则不清楚上一个回答（“{question}”）查询的是什么，无法接着它追问。请把问题说完整。",
            f'The offline rules can\'t tell what the previous answer ("{question}") is about and '
            "go on from it. Please ask the whole question.",
        )
    )


def which_one(words: str) -> Refusal:
    """Refuse a question that points at one thing where the result before is not about one."""
    return _unclear(
        Text(
            f"“{words}”指的是哪一个？请写出它的名称。",
            f'Which one is "{words}"? Please give its name.',
        )
    )
