"""Refuses literals that an older server reads as a number and a name: `1_000` was `1 AS _000`, `0x1F` `0 AS x1F`."""

import re

from postgast import scan

from common.errors import InvalidSql

_SUSPICIOUS = re.compile(r"0[xob]|\d_\d", re.IGNORECASE)


def refuse_new_numbers(text: str) -> None:
    """Returns when every number in `text`, which our grammar accepts, is one for older servers too.

    Raises:
        InvalidSql: one is not; with the message of the first PostgreSQL that refused them.
    """
    if not _SUSPICIOUS.search(text):
        return
    data = text.encode("utf-8")
    for token in scan(text).tokens:
        word = data[token.start : token.end]
        if word[:1] in b"0123456789." and _SUSPICIOUS.search(word.decode("utf-8", "replace")):
            place = len(data[: token.start].decode("utf-8", "replace")) + 1
            message = "trailing junk after numeric literal"
            raise InvalidSql(message, detail_zh="数字后面有多余的字符", sqlstate="42601", position=place)
