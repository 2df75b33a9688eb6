"""Telling apart pasted SQL, requests to change data, and honest questions that merely use such words.

"已删除的服务区有多少" and "orders updated yesterday" ask about data; "删除所有已关闭的服务区" and "drop the shop table"
want it changed. What matters is the verb's place: an order begins with it, or says 把 … 删除.
"""

import re

from common.values import Catalog
from common.word_files import Words
from rules.words import WORDS
from rules.words.statements import is_accident, is_statement

_FENCE = re.compile(r"```(?:sql|postgresql|pgsql)?\s*\n?(.*?)```", re.DOTALL | re.IGNORECASE)
_COMMENTS = re.compile(r"(?:\s*(?:--[^\n]*(?:\n|$)|/\*.*?\*/))+\s*", re.DOTALL)
_NAME = (
    r'(?:"[^"]+"|[A-Za-z_\u4e00-\u9fff][\w$\u4e00-\u9fff]*)(?:\.(?:"[^"]+"|[A-Za-z_\u4e00-\u9fff][\w$\u4e00-\u9fff]*))?'
)
_END = r"\s*(?:;|$)"
# Statements whose shape no sentence has.
_STATEMENTS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"\bdelete\s+from\s+(?:only\s+)?{_NAME}(?:\s+(?:where|using|returning)\b.*|{_END})",
        rf"\bupdate\s+(?:only\s+)?{_NAME}(?:\s+(?:as\s+)?\w+)?\s+set\s+{_NAME}\s*=.*",
        rf"\binsert\s+into\s+{_NAME}\s*(?:\(|values\b|select\b|default\b).*",
        rf"\b(?:drop|alter|create|truncate)\s+(?:or\s+replace\s+|temp\s+|temporary\s+|unique\s+|materialized\s+)*"
        rf"(?:table|view|index|schema|database|function|role|user|sequence|extension|type|trigger)\s+(?:if\s+(?:not\s+)?exists\s+)?"
        rf"{_NAME}(?:\s*[(;,].*|\s+(?:cascade|restrict|as|on|add|drop|rename|alter|owner|set|using|with|for)\b.*|{_END})",
        rf"\btruncate\s+{_NAME}{_END}",
        r"^\s*(?:grant|revoke)\s+[\w\s,*]+\s+(?:on|to|from)\s+.+",
        r"^\s*copy\s+.+\s+(?:to|from)\s+.+",
        r"^\s*(?:explain|analyze|vacuum|begin|commit|rollback|call|do|lock|reindex|cluster|listen|notify|prepare|execute|merge)"
        r"\s*(?:;|$|\s+(?:analyze|select|\(|table|into|transaction|work|\$\$).*)",
        r"^\s*(?:set|reset|show)\s+[a-z_.]+\s*(?:=|\bto\b).*",
        r"^\s*with\s+(?:recursive\s+)?\w+\s*(?:\([^)]*\))?\s+as\s+(?:not\s+)?(?:materialized\s+)?\(.*",
        r"^\s*\(*\s*select\s*(?:\d|'|\(|\*|[a-z_]\w*\s*\(|null\b|true\b|false\b|current_\w+|case\s+when).*",
        r"^\s*values\s*\(.*",
        r"^\s*table\s+\w+\s*;?\s*$",
    )
)
_ITEM = rf"(?:{_NAME}|[\w.\"]+\s*\([^)]*\)|\d+|'[^']*')(?:\s*[-+*/|]+\s*[\w.\"']+)*(?:\s+as\s+{_NAME})?"
_SELECT = re.compile(
    rf"^\s*\(*\s*select\s+(?:distinct\s+|all\s+)?(?:\*|{_ITEM})(?:\s*,\s*(?:\*|{_ITEM}))*\s+from\s+(?P<table>{_NAME}|\()(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_SQL_REST = re.compile(
    r"^\s*(?:$|;|,|(?:as\s+)?\w*\s*(?:where|join|left|right|inner|full|cross|group\s+by|order\s+by|limit|offset|having|union|"
    r"except|intersect|for\s+update)\b)",
    re.IGNORECASE,
)

_IGNORE = WORDS.chinese.text("orders.ignore")
_POLITE = rf"^\s*(?:{'|'.join(WORDS.english.phrases('orders.polite'))})*\s*"
_POLITE_HAN = rf"^(?:{'|'.join(WORDS.chinese.phrases('orders.polite'))}|,|、|:|\s|{_IGNORE}[^,。;]*[,。;])*"
_JOINT = rf"\b(?:{'|'.join(WORDS.english.phrases('orders.joints'))})\s+"
_JOINT_HAN = rf"(?:{'|'.join(WORDS.chinese.phrases('orders.joints'))})(?:{WORDS.any_of('orders.takes')})?"
_OBJECT = rf"\s+(?:{WORDS.any_of('orders.objects')})\b"
_NOT_VERB = rf"(?!{WORDS.any_of('orders.no_verb')})"
_STRUCTURE = re.compile(rf"\b(?:{WORDS.any_of('orders.structures')})s?\b", re.IGNORECASE)
_ASKS = re.compile(WORDS.any_of("orders.asks"))
_Orders = tuple[tuple[str, re.Pattern[str]], ...]


def _orders(words: Words, table: str, before: str, behind: str) -> _Orders:
    """What is ordered, and how; in the order of the table."""
    return tuple(
        (name, re.compile(rf"{before}(?:{'|'.join(verbs)}){behind}", re.IGNORECASE))
        for name, verbs in words.under(f"orders.{table}").items()
    )


_ENGLISH = _orders(WORDS.english, "verbs", _POLITE, r"\b") + _orders(WORDS.english, "verbs", _JOINT, _OBJECT)
_HAN_CLAUSE = _orders(WORDS.chinese, "verbs", _JOINT_HAN, _NOT_VERB)
_HAN = _orders(WORDS.chinese, "verbs", _POLITE_HAN, _NOT_VERB) + _orders(WORDS.chinese, "disposals", "", "")


def pasted_sql(question: str, catalog: Catalog | None = None) -> str | None:
    """The SQL statement in the question, verbatim; None when it is a sentence. `catalog` tells them apart."""
    fenced = _FENCE.search(question)
    text = (fenced.group(1) if fenced else question).strip()
    commented = _COMMENTS.match(text)
    if commented is not None:
        return text if pasted_sql(text[commented.end() :], catalog) is not None else None
    for pattern in _STATEMENTS:
        match = pattern.search(text)
        if match:
            return _statement(text, match.start())
    match = _SELECT.match(text)
    if match and (match.group("table") == "(" or _SQL_REST.match(match.group("rest"))):
        return text if not is_accident(text, catalog) else None
    if is_statement(text, catalog):
        return text
    after = re.split(r"[:：]", text, maxsplit=1)[-1].strip()  # an introduction such as "请执行："
    return pasted_sql(after, catalog) if after != text and len(after) > 6 else None


def _statement(text: str, start: int) -> str:
    """From the statement's beginning on; everything before it stays out only when it is not SQL itself."""
    before = text[:start].strip()
    if not before or re.match(r"(?i)(select|with|explain|\(|--|/\*)", before) or ";" in before:
        return text
    return text[start:].strip()


def write_request(question: str) -> str | None:
    """The operation a sentence orders (`DELETE`, `UPDATE`, …); None when it asks."""
    text = question.strip()
    for name, pattern in _ENGLISH:
        if pattern.search(text):
            return "DROP" if name == "DELETE" and _STRUCTURE.search(text) and "from" not in text.lower() else name
    asks = bool(_ASKS.search(text))
    for name, pattern in _HAN_CLAUSE:
        if pattern.search(text):
            return name
    for name, pattern in _HAN:
        if pattern.search(text) and not (asks and name not in ("DELETE", "DROP", "TRUNCATE")):
            return name
    return None
