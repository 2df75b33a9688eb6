"""Recognises addresses that PostgreSQL's client library can't use, and says what to do.

`other_engines.json` has the engines by the schemes of their URLs, and the extension by which a
PostgreSQL server shows their tables as its own.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from common.text import Text

_TABLE = Path(__file__).with_name("other_engines.json")
_SCHEME = re.compile(r"(jdbc:)?([a-z][a-z0-9.-]{0,30})(\+[a-z0-9_]{1,30})?:", re.IGNORECASE)
_POSTGRESQL = ("postgresql", "postgres")
_SPELLED = Text(
    "请写成 postgresql://用户:密码@localhost:5432/数据库，不带 jdbc: 和驱动的名字。",
    "Write it as postgresql://user:password@localhost:5432/database, without jdbc: and without the "
    "name of a driver.",
)


def other_engine(url: str) -> Text | None:
    """Return what to do about an address of another engine, or in another library's spelling.

    None: it begins like one of PostgreSQL, or like none that is known. The text never holds the
    address, which may hold a password.
    """
    scheme_match = _SCHEME.match(url.lstrip())
    if scheme_match is None:
        return None

    prefix, scheme, driver = scheme_match[1], scheme_match[2].lower(), scheme_match[3]
    if scheme in _POSTGRESQL:
        return _SPELLED if prefix or driver else None
    if scheme not in _engines():
        return None

    name, wrapper = _engines()[scheme]
    return _advice(name, wrapper)


def _advice(name: str, wrapper: str) -> Text:
    if not wrapper:
        return Text(
            f"这是 {name} 的地址，Citu 只查询 PostgreSQL：请先把数据复制到 PostgreSQL。",
            f"It is an address of {name}, and Citu asks PostgreSQL only: copy the data into "
            "PostgreSQL first.",
        )

    return Text(
        f"这是 {name} 的地址，Citu 只查询 PostgreSQL：可以用扩展 {wrapper} 让一台 PostgreSQL "
        "服务器把它的表显示为外部表，再填那台服务器的地址（见 docs/sources.md）；"
        "或者把数据复制到 PostgreSQL。",
        f"It is an address of {name}, and Citu asks PostgreSQL only: have a PostgreSQL server show "
        f"its tables as foreign ones by the extension {wrapper} and give that server's address "
        "(docs/sources.md), or copy the data into PostgreSQL.",
    )


@cache
def _engines() -> Mapping[str, tuple[str, str]]:
    """Return name and extension by the scheme."""
    engines: dict[str, tuple[str, str]] = {}
    for entry in json.loads(_TABLE.read_text("utf-8")):
        for scheme in entry["schemes"]:
            engines[scheme] = (entry["name"], entry["wrapper"])

    return engines
