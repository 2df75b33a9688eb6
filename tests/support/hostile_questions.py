"""Questions made to cost much: units repeated until a question is as long as may be."""

from common.values import Catalog

LONGEST = 8_000
"""Characters of the longest of them; more than a question may have by default."""
_MOST_NAMES = 400

PLAIN_UNITS = (
    "A B C D ",
    "a-b-",
    "word ",
    "A ",
    "a",
    "a.",
    "7",
    "7 ",
    "7,000",
    "1.",
    "-1",
    "2024-01-01 ",
    "2024-2025-",
    "last 3 months ",
    "january ",
    "Q1 ",
    "'a' ",
    '"a b" ',
    '"',
    "'",
    "“",
    "‘x",
    "`a`",
    "《a》",
    "的",
    "有多少",
    "最多的",
    "上个月",
    "三",
    "一百二十三万",
    "百分之",
    "年",
    "前",
    "和",
    "不",
    "请问",
    "你好，",
    "hello, ",
    "please ",
    "thanks! ",
    "the ",
    "of the ",
    "total ",
    "how many ",
    "and ",
    "not ",
    "why ",
    "top 5 ",
    "more than 3 ",
    "between 1 and 2 ",
    "by ",
    "compare with ",
    "what about ",
    "的前十名按",
    "(",
    "()",
    "[{(",
    "( a",
    "，",
    "?",
    "!",
    ";",
    "select ",
    "select * from a where (",
    "delete ",
    "\u3000",
    " ",
    "\u00a0 ",
    "a\u2003",
    "\u0301",
    "é",
    "e\u0301",
    "ﬁ",
    "😀",
    "👩‍👩‍👧",
    "\u200b",
    "ß",
    "Ａ１",
    "_",
    "a_",
    "a1",
    "A1b2-",
    "’s ",
    "1's ",
    "x's ",
    "%",
    "100%",
    "¥5",
    "\\",
    "\n",
)
"""Units that have nothing to do with a database."""


def _filled(unit: str, length: int) -> str:
    return (unit * (length // len(unit) + 1))[:length]


def units_of(catalog: Catalog) -> tuple[str, ...]:
    """Return units made of the names and values of a catalogue, and those that have none of
    these.
    """
    columns = [column for table in catalog.tables[:40] for column in table.columns]
    values = [value for column in columns for value in column.values[:3]]
    told = [table.comment for table in catalog.tables[:40] if table.comment]
    told += [column.comment for column in columns if column.comment]
    joined = (
        f"{' '.join(dict.fromkeys(words[:_MOST_NAMES]))} "
        for words in (
            [table.name for table in catalog.tables],
            [column.name for column in columns],
            [column.name.replace("_", " ") for column in columns],
            values,
            told,
            [
                f"{column.name} of {value} by"
                for column, value in zip(columns, values, strict=False)
            ],
        )
    )
    single = (f"{words[0]} " for words in (told, values, [one.name for one in columns]) if words)
    return (*PLAIN_UNITS, *filter(str.strip, joined), *single)


def hostile_questions(catalog: Catalog, length: int = LONGEST) -> tuple[str, ...]:
    """Return a question of the length for each unit."""
    return tuple(_filled(unit, length) for unit in units_of(catalog))
