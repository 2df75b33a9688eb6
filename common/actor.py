"""On whose behalf something is done, and who is charged for it."""

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

ANONYMOUS = "anonymous"  # the user id for requests that name no user

ATTRIBUTE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
"""What an attribute may be called, so that row rules can name it."""

Attributes = tuple[tuple[str, tuple[str, ...]], ...]
"""Names, each with its values; in order, and none without values."""


def attributes_of(values: Mapping[str, Iterable[str]]) -> Attributes:
    """Return these attributes without those that have no values; an empty text is none."""
    attributes = []
    for name in sorted(values):
        of_name = tuple(value for value in values[name] if value)
        if of_name:
            attributes.append((name, of_name))

    return tuple(attributes)


@dataclass(frozen=True)
class Actor:
    """The user who asks.

    Attributes:
        user_id: whose conversations and runs these are; None: nobody is authenticated, and the
            request names nobody.
        groups: the groups of the API key or of the access token; rights depend on them.
        acts_for_others: the key is trusted to say on whose behalf it asks.
        is_vouched_for: whether anybody but the request says that it is this user: a key, or that it
            comes from this machine's own user. Rights to rows depend on the user only then.
        attributes: what else is known of the caller, which row rules may name.
    """

    user_id: str | None = None
    groups: tuple[str, ...] = ()
    acts_for_others: bool = False
    is_vouched_for: bool = True
    attributes: Attributes = ()

    @property
    def owner(self) -> str:
        """Return the user who owns conversations, runs and audit lines; `anonymous` for nobody."""
        if self.user_id:
            return self.user_id

        return ANONYMOUS

    def values_of(self, attribute: str) -> tuple[str, ...]:
        """Return the values of the attribute of this name; none where the actor lacks it."""
        return dict(self.attributes).get(attribute, ())


NOBODY = Actor()

CallerId = tuple[str, str]
"""Who is charged for work: `("user", name)` or `("address", network)`."""

SERVICE: CallerId = ("service", "")
"""The service itself, whose work is everybody's: the catalogue, `/ready`."""

caller_id: ContextVar[CallerId] = ContextVar("caller_id", default=SERVICE)
"""Who is charged for the work being done; asyncio tasks started for a request inherit it."""

_WITH_PORT = re.compile(r"\A([\d.]++|\[[^\]]*+\]):\d++")  # as some proxies write addresses


def caller_id_of(caller: Actor, address: str | None) -> CallerId:
    """Return who is charged for a request: the key's user or, without a key, its address.

    The user that a request names does not count.
    """
    if caller.user_id is not None:
        return "user", caller.user_id
    if address is None:
        return "address", ""

    return "address", _network(address)


@contextmanager
def charged_to(charged: CallerId) -> Iterator[None]:
    """Charge the work inside the `with` block to `charged`."""
    token = caller_id.set(charged)
    try:
        yield
    finally:
        caller_id.reset(token)


def _network(address: str) -> str:
    """Return an IPv4 address itself, and of an IPv6 one the /64 network, which one sender owns."""
    bare = address
    with_port = _WITH_PORT.fullmatch(address)
    if with_port:
        bare = with_port[1].strip("[]")

    try:
        parsed = ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        return address

    if parsed.version == 4:
        return str(parsed)
    if parsed.ipv4_mapped is not None:  # as a socket for both versions shows IPv4
        return str(parsed.ipv4_mapped)

    return str(ipaddress.ip_network((int(parsed), 64), strict=False))
