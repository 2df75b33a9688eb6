"""Where a source is, and how the hub connects to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from psycopg2 import ProgrammingError
from psycopg2.extensions import make_dsn, parse_dsn

from common.text import Text

_SCHEMES = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
}
_EXAMPLE = "postgresql://user:password@host:5432/database"
READ_ONLY = "-c default_transaction_read_only=on"
SERVER_PARTS = ("host", "hostaddr", "port", "dbname", "sslmode", "sslrootcert", "service")
USER_PARTS: tuple[str, ...] = ("user", "password")


class SourceError(Exception):
    """A command can't be carried out; the text says why and what to do."""

    def __init__(self, zh: str, en: str) -> None:
        super().__init__(en)
        self.text = Text(zh, en)


@dataclass(frozen=True)
class SourceAddress:
    """The address of a source.

    Attributes:
        kind: `postgresql` or `mysql`.
        server: what the hub's foreign server is told: host, port and so on.
        user: what its user mapping is told: user and password.
    """

    kind: str
    server: Mapping[str, str]
    user: Mapping[str, str]

    @property
    def role(self) -> str:
        """Return the name of the source's role."""
        return self.user.get("user") or self.user.get("username", "")

    @property
    def dsn(self) -> str:
        """Return the address of a PostgreSQL source, read-only as the hub uses it."""
        return make_dsn(**{**self.server, **self.user, "options": READ_ONLY})


def source_address(url: str) -> SourceAddress:
    """Read the URL of a source to attach.

    Raises:
        SourceError: it is none of a source.
    """
    scheme = urlsplit(url).scheme
    kind = _SCHEMES.get(scheme)
    if kind is None:
        raise SourceError(
            f"来源的地址应如 {_EXAMPLE} 或 mysql://…；不能接入其他引擎。",
            f"The URL of a source is such as {_EXAMPLE} or mysql://…; other engines can't be"
            " attached.",
        )
    if kind == "mysql":
        return _mysql_address(url)

    try:
        parts = parse_dsn(url)
    except ProgrammingError as error:
        raise SourceError(
            f"来源的地址无法读取：应如 {_EXAMPLE}。",
            f"The source's URL can't be read: it is such as {_EXAMPLE}.",
        ) from error

    server = {name: str(parts[name]) for name in SERVER_PARTS if name in parts}
    user = {name: str(parts[name]) for name in USER_PARTS if name in parts}
    if "user" not in user or "dbname" not in server:
        raise SourceError(
            f"来源的地址需要用户和数据库：{_EXAMPLE}。",
            f"The URL of the source needs a user and a database: {_EXAMPLE}.",
        )

    return SourceAddress(kind, server, user)


def _mysql_address(url: str) -> SourceAddress:
    parts = urlsplit(url)
    database = unquote(parts.path.strip("/"))
    if not parts.hostname or not parts.username or not database:
        raise SourceError(
            "来源的地址需要主机、用户和数据库。",
            "The URL of the source needs a host, a user and a database.",
        )

    server = {"host": parts.hostname, "dbname": database}
    if parts.port:
        server["port"] = str(parts.port)

    user = {"username": unquote(parts.username), "password": unquote(parts.password or "")}
    return SourceAddress("mysql", server, user)
