"""Why the rules give no statement, in words the user can act on. Answering something else would be worse."""

import re
from collections.abc import Iterable, Sequence
from functools import partial

from common.meanings import TableKey
from common.text import Text
from common.values import FailureReason
from knowledge.naming import called, has_han
from knowledge.spelling import alike, closest, did_you_mean
from rules.query.pending import Missing, Pending
from rules.schema.facts import Facts
from rules.schema.lexicon import Lexicon


class Refusal(Exception):
    """The question can't be answered by rules; `text` tells the user why and what would help.

    Attributes:
        words: those of the question that are the trouble.
        choices: what may be meant by them, or what is still to be said.
        missing: what the user may say to have the question answered.
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
        """The same as it was before it was raised, of the question `pending`."""
        return Refusal(
            self.reason, self.text, words=self.words, choices=self.choices, missing=self.missing, pending=pending
        )


_NOT_A_WRONG_ONE = Text("，为避免答非所问，没有生成SQL", ", so no SQL was written rather than a wrong one")
_ADVICE = Text("。请(?!说明)[^。]*。?$", r"\. Please (?!say)[^.]*\.?$")  # patterns of what a refusal ends with
_MOST_NAMED = 4  # figures
_LEAST_LIKENESS = 0.72  # of names that are suggested
_UNSUPPORTED = {
    "why": Text("解释原因", "explain why something is so"),
    "forecast": Text("预测或发现异常", "forecast, estimate or find anomalies"),
    "statistics": Text(
        "这类统计（相关性、回归、众数等）", "compute this kind of statistics (correlation, regression, mode, …)"
    ),
    "calendar": Text("区分节假日、白天和夜间", "tell holidays, or day and night, apart"),
    "growth": Text("计算这种比率或变化", "compute this kind of ratio or change"),
    "set": Text("处理“只有”“相同”“第几名”这类条件", 'handle conditions such as "only", "same", "second highest"'),
}


_not_done = partial(Refusal, "unknown_generation_failure")
_not_there = partial(Refusal, "missing_database_info")
_unclear = partial(Refusal, "ambiguous_question")


def unsupported(kind: str, word: str) -> Refusal:
    """A construct that rules don't cover; `kind` is the argument of the `unsupported` intent."""
    what = _UNSUPPORTED[kind]
    return _not_done(
        Text(
            f"“{word}”：离线规则无法{what.zh}。请换一种问法，例如按时间或类别分组查询具体数字，或配置大模型后再试。",
            f'"{word}": the offline rules can\'t {what.en}. Ask for the figures by period or group instead, '
            "or configure a language model.",
        )
    )


def unknown_words(words: Sequence[str], lexicon: Lexicon) -> Refusal:
    """Words of the question that name nothing in the database."""
    shown, near, tables = in_quotes(words), similar_names(words, lexicon), _tables(lexicon)
    hint = Text(f"可以查询的内容有：{tables.zh}。", f"There is data about: {tables.en}.")
    if near:
        hint = Text(f"您是不是要找：{'、'.join(near)}？", f"Did you mean: {', '.join(near)}?")
    return _not_there(
        Text(
            f"数据库中没有找到与{shown.zh}对应的表、字段或取值。{hint.zh}",
            f"Nothing in the database is called {shown.en}. {hint.en}",
        ),
        words=words,
    )


def nobody_called(said: str, choices: Sequence[str]) -> Refusal:
    """A name that nobody bears; `choices` are stored ones that resemble it."""
    return _not_there(did_you_mean(said, choices))


def similar_names(words: Sequence[str], lexicon: Lexicon, count: int = 3) -> list[str]:
    """Names of the catalogue spelled like one of the words; without any, stored names that resemble one."""
    found: dict[str, None] = {}
    for word in words:
        names = lexicon.suggested.names_like(word.lower())
        close = closest(word.lower(), names, count, _LEAST_LIKENESS)
        if has_han(word):
            close += [name for name in names if len(set(name) & set(word)) >= 2 and name not in close][:count]
        found.update(dict.fromkeys(close))
    return list(found)[:count] or _similar_values(words, lexicon)[:count]


def _similar_values(words: Sequence[str], lexicon: Lexicon) -> list[str]:
    """Stored names of people and things that resemble one of the words."""
    looked_up = [value for said, value in lexicon.offered if any(word in said for word in words)]
    return looked_up + [value for word in words for column in lexicon.people for value in alike(word, column.values)]


def _tables(lexicon: Lexicon, count: int = 6) -> Text:
    """What the first tables of the catalogue are called."""
    tables = [table for table in lexicon.schema.catalog.tables if table.kind == "table"]
    return enumerated([called(table) for table in (tables or lexicon.schema.catalog.tables)[:count]])


def in_quotes(words: Iterable[str]) -> Text:
    """Words of the question, as they were written."""
    words = tuple(words)
    return Text("、".join(f"“{word}”" for word in words), ", ".join(f'"{word}"' for word in words))


def enumerated(names: Iterable[Text]) -> Text:
    """Several names in a row."""
    names = tuple(names)
    return Text("、".join(name.zh for name in names), ", ".join(name.en for name in names))


def ambiguous_column(word: str | Text, choices: Sequence[tuple[TableKey, str]], lexicon: Lexicon) -> Refusal:
    """A word that names several columns equally well."""
    named, word = enumerated(_described(lexicon, key, column) for key, column in choices), _in_both(word)
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


def _in_both(name: str | Text) -> Text:
    """A name in both languages; what the question says is the same in either."""
    return name if isinstance(name, Text) else Text(name, name)


def several_people(word: str, tables: Sequence[TableKey], lexicon: Lexicon) -> Refusal:
    """`谁` where several kinds of people have to do with the rows."""
    kinds = [called(lexicon.schema.table(key)) for key in tables]
    named = enumerated(kinds)
    return _unclear(
        Text(f"“{word}”可以指：{named.zh}。请说明是哪一个。", f'"{word}" can be one of: {named.en}. Please say which.'),
        words=(word,),
        choices=[Text(f"哪个{kind.zh}", f"which {kind.en}") for kind in kinds],
        missing=Missing("choice", tuple((key, None) for key in tables)),
    )


def ambiguous_way(table: TableKey, choices: Sequence[tuple[TableKey, str]], lexicon: Lexicon) -> Refusal:
    """Two tables are tied in several ways."""
    named = enumerated(_described(lexicon, key, column) for key, column in choices)
    target = called(lexicon.schema.table(table))
    return _unclear(
        Text(
            f"与“{target.zh}”有多种关联方式：{named.zh}。请说明按哪一种。",
            f'There are several ways to relate to "{target.en}": {named.en}. Please say which one.',
        ),
        missing=Missing("choice", tuple(choices)),
    )


def _described(lexicon: Lexicon, key: TableKey, column: str) -> Text:
    """A column for a sentence: its label, and its place in the database. Without a column, the table."""
    if not column:
        return called(lexicon.schema.table(key))
    found = lexicon.schema.table(key).column(column)
    named = called(found) if found is not None else Text(column, column)
    place = f"{key[1]}.{column}"
    return Text(*(f"{name}（{place}）" if has_han(name) else f"{name} ({place})" for name in named))


def missing_measure(entity: str | Text, facts: Facts | None = None) -> Refusal:
    """A ranking that does not say by what; `facts` are of the table whose figures are named as examples."""
    choices = [called(column) for column in facts.measures[:_MOST_NAMED]] if facts is not None else []
    entity, named = _in_both(entity), enumerated(choices)
    examples = Text(f"，例如：{named.zh}", f", for example: {named.en}") if choices else Text("", "")
    return _unclear(
        Text(
            f"请说明“{entity.zh}”按什么指标排序{examples.zh}。",
            f'Please say by which figure "{entity.en}" should be ranked{examples.en}.',
        ),
        choices=choices,
        missing=Missing("figure", ((facts.table.key, None),) if facts is not None else ()),
    )


def unused_words(words: Sequence[str]) -> Refusal:
    """Words that were recognised but found no place in the statement."""
    shown = Text("某些部分", "asking for this")
    if words:
        shown = Text("".join(f"“{word}”" for word in words), in_quotes(words).en)
    return _not_done(
        Text(
            f"没能理解问题中的{shown.zh}所起的作用{_NOT_A_WRONG_ONE.zh}。请把问题拆开或换一种说法。",
            f"The part {shown.en} of the question could not be placed{_NOT_A_WRONG_ONE.en}. "
            "Please split or rephrase the question.",
        ),
        words=words,
    )


def missing_year(word: str) -> Refusal:
    """A month or quarter without its year."""
    return _unclear(
        Text(f"“{word}”是哪一年的？请补充年份。", f'Which year is "{word}" in? Please add the year.'),
        words=(word,),
        choices=years_of(word),
        missing=Missing("year", word=word),
    )


def years_of(word: str) -> tuple[Text, ...]:
    """The month or quarter `word` of the years that are likely meant."""
    return Text(f"今年{word}", f"{word} this year"), Text(f"去年{word}", f"{word} last year")


def no_date_column(what: Text) -> Refusal:
    """A period was given, but the rows asked about carry no date."""
    return _not_there(
        Text(f"“{what.zh}”没有可用于时间筛选的日期字段。", f'"{what.en}" has no date column to apply the period to.')
    )


def too_long(words: int, most: int) -> Refusal:
    """A question of more words than rules read."""
    return _not_done(
        Text(
            f"问题太长（{words}个词），离线规则最多读取{most}个词。请缩短问题。",
            f"The question has {words} words; the offline rules read up to {most}. Please shorten it.",
        )
    )


def not_understood(lexicon: Lexicon) -> Refusal:
    """Nothing in the question names anything of the database."""
    tables = _tables(lexicon)
    return _not_there(
        Text(
            f"没有从问题中识别出要查询的内容。可以查询的内容有：{tables.zh}。",
            f"The question names nothing in the database. There is data about: {tables.en}.",
        )
    )


def not_connected(first: Text, second: Text) -> Refusal:
    """Nothing relates two tables."""
    return _not_there(
        Text(
            f"数据库中没有“{first.zh}”与“{second.zh}”之间的关联关系。",
            f'Nothing in the database relates "{first.en}" to "{second.en}".',
        )
    )


def not_combinable() -> Refusal:
    """The tables needed can't be joined without counting rows several times."""
    return _not_done(
        Text(
            "这个问题涉及的数据无法在不重复计算的情况下合并成一条查询。请把问题拆成几个分别提问。",
            "The data this question needs can't be combined in one query without counting rows twice. "
            "Please ask for the parts separately.",
        )
    )


def beyond_grain(metric: Text, known: Sequence[Text]) -> Refusal:
    """A metric is asked for by something that it means nothing by."""
    zh, en = "、".join(one.zh for one in known), ", ".join(one.en for one in known)
    return _not_done(
        Text(f"“{metric.zh}”只能按以下各项分组：{zh}。", f'"{metric.en}" can be grouped only by these: {en}.')
    )


def not_carried(name: Text, what: Text) -> Refusal:
    """Groups of the earlier question mean nothing for the new figure."""
    return _not_done(Text(f"“{what.zh}”不能按“{name.zh}”分组", f'"{what.en}" can\'t be grouped by "{name.en}"'))


def nothing_to_change(what: Text) -> Refusal:
    """A follow-up changes what the earlier question does not have."""
    return _unclear(Text(f"上一个问题没有{what.zh}", f"the previous question has no {what.en}"))


def not_continued(refusal: Refusal, question: str) -> Refusal:
    """A follow-up to `question` that can't be followed, and why."""
    why = grounds(refusal)
    return Refusal(
        refusal.reason,
        Text(
            f"这句话被理解为接着“{question}”的追问，但没有生成SQL：{why.zh}。请把问题说完整。",
            f'This was understood as following up on "{question}", but no SQL was written: {why.en}. '
            "Please ask the whole question.",
        ),
        missing=refusal.missing,
    )


def grounds(refusal: Refusal) -> Text:
    """Why it was refused, without the advice at the end and the last full stop."""
    zh, en = (
        re.sub(advice, "", text).removesuffix(instead)
        for text, advice, instead in zip(refusal.text, _ADVICE, _NOT_A_WRONG_ONE, strict=True)
    )
    return Text(zh.rstrip("。"), en.rstrip("."))


def not_by_rules(question: str) -> Refusal:
    """Rules can't tell what the earlier answer is about: a model or SQL gave it, or the database has changed since."""
    return _unclear(
        Text(
            f"离线规则不清楚上一个回答（“{question}”）查询的是什么，无法接着它追问。请把问题说完整。",
            f'The offline rules can\'t tell what the previous answer ("{question}") is about and go on from it. '
            "Please ask the whole question.",
        )
    )


def which_one(words: str) -> Refusal:
    """A thing is pointed at, but the result before is not about one such thing."""
    return _unclear(Text(f"“{words}”指的是哪一个？请写出它的名称。", f'Which one is "{words}"? Please give its name.'))
