"""Telling apart pasted SQL, requests to change data, and honest questions that merely use such words.

"已删除的服务区有多少" and "orders updated yesterday" ask about data; "删除所有已关闭的服务区" and "drop the shop table"
want it changed. What matters is the verb's place: an order begins with it, or says 把 … 删除.
"""

import re

_FENCE = re.compile(r"```(?:sql|postgresql|pgsql)?\s*\n?(.*?)```", re.DOTALL | re.IGNORECASE)
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

_POLITE = (
    r"^\s*(?:please|pls|kindly|can you|could you|would you|will you|i want to|i want you to|i need to|i need you to|"
    r"i'd like to|i would like to|go ahead and|help me|let's|now|then|just|quickly|immediately|ok|okay|hey|and|"
    r"you must|you should|"
    r"ignore [^.,;:]*[.,;:]|,|\.|:|to)*\s*"
)
_VERBS: tuple[tuple[str, str], ...] = (
    ("DROP", r"drop(?! in\b| of\b| rate| off| out|s\b)|destroy"),
    ("TRUNCATE", r"truncate|wipe|empty(?= (?:the|all|out)\b)|purge"),
    (
        "DELETE",
        r"delete(?! (?:time|date|flag|rate|count))|remove(?! duplicates?\b)|erase|get rid of|clean up|clear(?= "
        r"(?:the|all|out)\b)",
    ),
    (
        "UPDATE",
        r"update(?! (?:time|date|history|log|frequency|count)s?\b)|modify|change(?! (?:in|of|over|from last|"
        r"rate)\b)|edit|rename|"
        r"increase (?:the|all|every|each|\w+s by)|raise (?:the|all|every|each|\w+s by)|reduce (?:the|all|every)|"
        r"decrease (?:the|all|every)|lower (?:the|all|every)|double (?:the|all|every)|set (?=.+\b(?:to|as|"
        r"=)\b)|mark (?=.+\bas\b)|"
        r"cancel(?! rate|led)|archive|approve|assign|transfer|restore|replace|overwrite|reset|fix|correct(?= "
        r"the)|give (?=.+\b(?:raise|discount)\b)",
    ),
    (
        "INSERT",
        r"insert|add(?! up\b| together\b| all\b.*\bup\b)|import|register a|append|put (?=.+\binto\b)|record a|enter a",
    ),
    ("ALTER", r"alter"),
    ("CREATE", r"create(?! (?:time|date))|make a new|build a(?: new)? (?:table|index|view|database)"),
    ("GRANT", r"grant|revoke"),
)
_ENGLISH = tuple((name, re.compile(rf"{_POLITE}(?:{verbs})\b", re.IGNORECASE)) for name, verbs in _VERBS)
_CLAUSE = tuple(
    (
        name,
        re.compile(
            rf"\b(?:and then|then|and also|and|;|,)\s+(?:{verbs})\s+(?:the|all|it|them|those|these|every|any|"
            rf"\w+ table|from)\b",
            re.IGNORECASE,
        ),
    )
    for name, verbs in _VERBS
)
_TABLE_OBJECT = re.compile(r"\b(?:table|view|index|column|schema|database)s?\b", re.IGNORECASE)

_POLITE_HAN = (
    r"^(?:请|帮我|帮忙|麻烦|麻烦你|我要|我想|我想要|我需要|给我|你|您|能否|可以|可不可以|能不能|现在|"
    r"立即|马上|直接|一下|先|就|去|,|、|:|\s|忽略[^,。;]*[,。;])*"
)
_NOT_VERB = r"(?!的|了多少|了几|时间|日期|标志|标记|标识|人|状态|情况|数|次数|过|率|量|于|最|前|后|及|和)"
_HAN_VERBS: tuple[tuple[str, str], ...] = (
    ("DROP", "删表|删库|删除(?=.{0,12}(?:表$|表格|数据库|视图|索引|字段|列$))|销毁"),
    ("TRUNCATE", "清空|清除"),
    ("DELETE", "删除|删掉|删了|移除|去除|抹掉|删去|彻底删除|批量删除"),
    ("UPDATE", "修改|更改|变更|篡改|更新(?=.{1,})|重命名|调高|调低|上调|下调|涨价|降价|作废|取消(?!率)|重置|归档"),
    ("INSERT", "插入|添加|录入|写入|导入|新增一|增加一|新增(?=.{0,10}(?:记录|数据|一条|一个|一家|叫|名为))|登记一"),
    ("CREATE", "创建|新建|建表|建立一|建一张"),
    ("ALTER", "加一列|加字段|增加字段|添加字段|增加一列"),
    ("GRANT", "授权|授予|撤销权限"),
)
_HAN = tuple((name, re.compile(f"{_POLITE_HAN}(?:{verbs}){_NOT_VERB}")) for name, verbs in _HAN_VERBS)
_HAN_CLAUSE = tuple(
    (
        name,
        re.compile(
            f"(?:然后|并且|并|再|接着|最后|同时|顺便|之后)(?:把.{{0,8}}|将.{{0,8}}|全部)?(?:{verbs}){_NOT_VERB}"
        ),
    )
    for name, verbs in _HAN_VERBS
)
_HAN_DISPOSAL: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("DELETE", re.compile("(?:把|将).+(?:删除|删掉|删了|移除|清空|清除|去掉)(?!的)(?:吧|掉|了|一下|干净)?[。!！]?$")),
    (
        "UPDATE",
        re.compile(
            "(?:把|将|给).+(?:改成|改为|改到|设为|设置为|设成|更新为|更新成|调整为|调整到|标记为|置为|修改为|修改成|涨到|降到|上调|下调|提高|降低|翻倍|涨价|加薪|打折)"
        ),
    ),
    ("UPDATE", re.compile("(?:改成|改为|更新为|设置为|修改为|修改成|设成)[^的?？]+[。!！]?$")),
    ("INSERT", re.compile("(?:把|将|给|向|往).+(?:添加|增加|插入|加入|加到|写入|新增|录入)(?!的).*$")),
)
_ASKS = re.compile("多少|几|哪|排行|排名|统计|趋势|吗|[?？]|什么|谁|占比|查询|列出|显示|查看|平均|总")


def pasted_sql(question: str) -> str | None:
    """The SQL statement in the question, verbatim; None when it is a sentence."""
    fenced = _FENCE.search(question)
    text = (fenced.group(1) if fenced else question).strip()
    for pattern in _STATEMENTS:
        match = pattern.search(text)
        if match:
            return _statement(text, match.start())
    match = _SELECT.match(text) or _SELECT.match(_after_colon(text))
    if match and (match.group("table") == "(" or _SQL_REST.match(match.group("rest"))):
        return text if _SELECT.match(text) else _after_colon(text)
    after = _after_colon(text)
    return pasted_sql(after) if after != text and len(after) > 6 else None


def _statement(text: str, start: int) -> str:
    """From the statement's beginning on; everything before it stays out only when it is not SQL itself."""
    before = text[:start].strip()
    if not before or re.match(r"(?i)(select|with|explain|\(|--|/\*)", before) or ";" in before:
        return text
    return text[start:].strip()


def _after_colon(text: str) -> str:
    """What follows an introduction such as "请执行："."""
    return re.split(r"[:：]", text, maxsplit=1)[-1].strip()


def write_request(question: str) -> str | None:
    """The operation a sentence orders (`DELETE`, `UPDATE`, …); None when it asks."""
    text = question.strip()
    for name, pattern in (*_ENGLISH, *_CLAUSE):
        if pattern.search(text):
            return "DROP" if name == "DELETE" and _TABLE_OBJECT.search(text) and "from" not in text.lower() else name
    asks = bool(_ASKS.search(text))
    for name, pattern in _HAN_CLAUSE:
        if pattern.search(text):
            return name
    for name, pattern in (*_HAN, *_HAN_DISPOSAL):
        if pattern.search(text) and not (asks and name not in ("DELETE", "DROP", "TRUNCATE")):
            return name
    return None
