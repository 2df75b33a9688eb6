"""What is said when a connection fails.

PostgreSQL's own message names hosts and roles: users get one of these texts instead, and the log
gets the message without the names.
"""

import re

import psycopg2

from common.text import Text

_MOST_CHARS = 1000  # of a message of PostgreSQL's

UNREACHABLE = Text(
    "数据库暂时无法连接，请稍后重试。",
    "The database can't be reached at the moment. Try again later.",
)
BUSY = Text(
    "数据库连接繁忙，请稍后重试。", "All database connections are in use. Try again shortly."
)


def unstoppable(count: int) -> Text:
    """Return the text for `count` connections that nobody can have."""
    return Text(
        f"全部 {count} 个数据库连接都被 PostgreSQL 无法中止的语句占用，请在这些语句结束后重试，"
        f"或请管理员处理。",
        f"All {count} database connections are busy with statements that PostgreSQL can't stop. "
        "Try again when they have ended, or tell your administrator.",
    )


def share_taken(count: int) -> Text:
    """Return the text for a caller who uses all of their `count` connections."""
    return Text(
        f"您的语句正在使用一个调用者最多可用的 {count} 个数据库连接，请在其中一个结束后重试。",
        f"Your statements use all {count} database connections that one caller may use. "
        "Try again when one has ended.",
    )


def share_unstoppable(count: int) -> Text:
    """Return the text for a caller whose `count` connections run what can't be stopped."""
    return Text(
        f"一个调用者最多可用 {count} 个数据库连接，它们都被您的、PostgreSQL 无法中止的语句占用，"
        "请在这些语句结束后重试。",
        f"All {count} database connections that one caller may use are busy with statements of "
        "yours that PostgreSQL can't stop. Try again when they have ended.",
    )


def first_line(error: psycopg2.Error, otherwise: str) -> str:
    """Return the first line of PostgreSQL's own message, for operators: it names hosts and roles.

    Args:
        otherwise: what is said when the error has no message.
    """
    lines = str(error).strip().splitlines()
    return lines[0] if lines else otherwise


def describe(error: psycopg2.Error) -> str:
    """Return the reason of a failed connection, for the log: without hosts, roles or databases."""
    lines = str(error)[-_MOST_CHARS:].strip().splitlines()
    if not lines:
        return type(error).__name__

    _, _, reason = lines[-1].rpartition("FATAL:")
    return re.sub(r'"[^"]*"|\([^()]*\)|\bport \d+', "…", reason).strip()
