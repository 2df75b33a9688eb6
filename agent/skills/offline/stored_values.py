"""What people call the values stored in a column: the value itself, its inflections, and the labels of its codes."""

import re
from collections.abc import Iterator

from agent.skills.offline.atoms import key_of, normalise
from agent.skills.offline.naming import has_han
from common.values import Column

# `0-正常 1-停用`, `1=active, 2=closed`, `0:正常,1:停用`
_LABELLED = re.compile(r"(?<![\w.])([A-Za-z0-9]{1,12})\s*[-=:：、.]\s*([^\s,，;；、:：=()（）\-]+)")
_LISTED = re.compile(r"[、,，;；/|]")
_PLACE_TAILS = (
    "特别行政区",
    "自治区",
    "省",
    "市",
    "自治州",
    "县",
    "区",
    "有限责任公司",
    "股份有限公司",
    "有限公司",
    "集团",
)
_MAX_LISTED = 12

ValueName = tuple[str, str, float]


def labelled_values(column: Column) -> Iterator[ValueName]:
    """(stored value, label, quality) from a comment such as `状态：0-停用 1-正常`, and values a comment enumerates."""
    comment = normalise(column.comment or "")
    pairs = _LABELLED.findall(comment)
    if len(pairs) >= 2:
        yield from ((code, text, 1.0) for code, text in pairs)
    elif ":" in comment and has_han(comment) and not column.is_complete:
        listed = [part.strip(" 。.") for part in _LISTED.split(comment.split(":", maxsplit=1)[1])]
        if 2 <= len(listed) <= _MAX_LISTED and all(1 < len(part) <= 10 for part in listed):
            yield from ((part, part, 0.9) for part in listed if part not in column.values)


def value_names(column: Column) -> Iterator[ValueName]:
    """(stored value, how people say it, quality) for the sampled values."""
    for value in column.values:
        folded = normalise(value)
        if not folded or re.fullmatch(r"[\d\s.,:+-]*", folded):
            continue
        yield value, folded, 1.0
        if not has_han(folded):
            continue
        for tail in _PLACE_TAILS:
            if folded.endswith(tail) and len(key_of(folded)) - len(tail) >= 2:
                yield value, folded[: -len(tail)], 0.85
                break
