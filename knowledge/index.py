"""Keeps what is worked out of a catalogue, once for all questions, as long as the catalogue itself.

It is worked out off the event loop.

Each catalogue object has one `CatalogIndex`, and whoever needs something worked out of it adds a
`IndexPart`: the ranking of tables, the names to suggest, the rules' phrases. A part may be made of
others. A large catalogue takes seconds. Whoever asks for a part meanwhile waits for the same work,
and other questions go on. When a catalogue has changed, `renew` makes the parts that were in use,
so that they are there when the first question comes to the new one. `make_elsewhere` names who is
asked for parts first.
"""

import asyncio
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from common.values import Catalog, Table

T = TypeVar("T")

_ADDRESSES: dict[str, None] = {}


class NotMade(Exception):
    """A part is not made elsewhere, so it has to be made here."""


def addresses() -> tuple[str, ...]:
    """Return the addresses of the parts that another process can make."""
    return tuple(_ADDRESSES)


@dataclass(frozen=True, eq=False)
class IndexPart(Generic[T]):
    """A part of the index: a value that is worked out of a catalogue.

    Attributes:
        make: works it out of an index; may ask it for other parts, but not for this one. What it
            returns may keep `CatalogIndex.catalog`, not the index itself, or neither would ever be
            freed. Of thousands of tables it should hold few objects but texts, numbers and arrays
            and tuples of those: the garbage collector, which stops all threads meanwhile, looks at
            every other one.
        ignores_row_counts: whether it stays the same when only the tables' estimated numbers of
            rows have changed.
        address: `module:NAME`, by which another process finds it; only for what can be pickled.
    """

    make: "Callable[[CatalogIndex], T]"
    ignores_row_counts: bool = False
    address: str = ""

    def __post_init__(self) -> None:
        if self.address:
            _ADDRESSES[self.address] = None

    def of(self, catalog: Catalog) -> T:
        """Return the value for this very catalogue object; make it first, raising what that raises.

        It is made in this thread if nobody has begun. Blocks until it is there. On the event loop,
        await `ready` first.
        """
        return index_of(catalog).part(self)

    async def ready(self, catalog: Catalog) -> T:
        """Return what `of` does, made in a thread if it has to be made.

        Cancelling it does not end the work, for which others may wait.
        """
        return await index_of(catalog).ready(self)


class CatalogIndex:
    """The parts of one catalogue. Comes from `index_of`.

    Attributes:
        catalog: says the same as the catalogue, but is another object: parts may keep it without
            keeping alive what they are dropped with.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = replace(catalog)
        self._owner = weakref.ref(catalog)
        self._parts: dict[IndexPart[Any], Future[Any]] = {}
        self._turn = threading.Lock()

    def is_of(self, catalog: Catalog) -> bool:
        """Tell whether it belongs to this very object."""
        return catalog is self.catalog or catalog is self._owner()

    @property
    def parts(self) -> tuple[IndexPart[Any], ...]:
        """Return the parts that are there or being made, in the order they were asked for."""
        with self._turn:
            return tuple(self._parts)

    def part(self, part: IndexPart[T]) -> T:
        future, is_new = self._found(part)
        if is_new:
            self._make(part, future)

        return future.result()

    async def ready(self, part: IndexPart[T]) -> T:
        future, is_new = self._found(part)
        if is_new:
            # A thread of its own: those of the loop's pool may all be busy, and the process would
            # wait for them to end.
            threading.Thread(
                target=self._make, args=(part, future), name="catalog-index", daemon=True
            ).start()
        if future.done():
            return future.result()

        return await asyncio.wrap_future(future)

    def take(self, other: "CatalogIndex") -> None:
        """Use the finished parts of `other`, whose catalogue differs only in numbers of rows."""
        with other._turn:
            parts = dict(other._parts)

        same = {}
        for part, future in parts.items():
            if part.ignores_row_counts and future.done():
                same[part] = future

        with self._turn:
            self._parts = same | self._parts

    def _found(self, part: IndexPart[T]) -> tuple[Future[T], bool]:
        """Return the part's future, and whether the caller has to make it."""
        with self._turn:
            future = self._parts.get(part)
            if future is not None:
                return future, False

            future = self._parts[part] = Future()
            future.set_running_or_notify_cancel()  # from now on, who waits for it can't cancel it
            return future, True

    def _make(self, part: IndexPart[T], future: Future[T]) -> None:
        try:
            future.set_result(self._make_part(part))
        except BaseException as exc:  # noqa: BLE001 - whoever waits gets it
            with self._turn:
                self._parts.pop(part, None)  # the next who asks tries again

            future.set_exception(exc)

    def _make_part(self, part: IndexPart[T]) -> T:
        for elsewhere in _ELSEWHERE if part.address else ():
            with suppress(NotMade):
                made: T = elsewhere(part, self)
                return made

        return part.make(self)


Elsewhere = Callable[[IndexPart[Any], CatalogIndex], Any]
"""Returns the value of a part; may block. Raises `NotMade`."""


_ELSEWHERE: list[Elsewhere] = []  # at most one


def make_elsewhere(elsewhere: Elsewhere) -> None:
    """Ask `elsewhere` for parts from now on, and make those here that it doesn't."""
    _ELSEWHERE[:] = [elsewhere]


_INDEXES: dict[int, CatalogIndex] = {}  # by the identities of catalogues
_BY_COPIES: weakref.WeakValueDictionary[int, CatalogIndex] = weakref.WeakValueDictionary()
_TURN = threading.Lock()


def index_of(catalog: Catalog) -> CatalogIndex:
    """Return the index of this very catalogue object, with which it is dropped.

    At first it has no parts.
    """
    index = _existing_index(catalog)
    if index is not None:
        return index

    with _TURN:
        index = _existing_index(catalog)
        if index is None:
            index = CatalogIndex(catalog)
            _INDEXES[id(catalog)] = _BY_COPIES[id(index.catalog)] = index
            weakref.finalize(catalog, _INDEXES.pop, id(catalog), None).atexit = False

        return index


def _existing_index(catalog: Catalog) -> CatalogIndex | None:
    for index in (_INDEXES.get(id(catalog)), _BY_COPIES.get(id(catalog))):
        if index is not None and index.is_of(catalog):
            return index

    return None


async def renew(catalog: Catalog, before: Catalog) -> None:
    """Make of `catalog` the parts that `before`, which it replaces, has.

    Those that would be the same are kept.
    """
    old = index_of(before)
    new = index_of(catalog)
    if await asyncio.to_thread(_says_the_same, catalog, before):
        new.take(old)

    renewed: set[IndexPart[Any]] = set()
    # Questions may need further ones meanwhile.
    while missing := [part for part in old.parts if part not in renewed]:
        for part in missing:
            await new.ready(part)

        renewed.update(missing)


def _says_the_same(catalog: Catalog, other: Catalog) -> bool:
    """Tell whether they differ in nothing but the estimated numbers of rows."""
    if catalog.search_path != other.search_path:
        return False
    if catalog.metrics != other.metrics:
        return False
    if len(catalog.tables) != len(other.tables):
        return False

    pairs = zip(catalog.tables, other.tables, strict=True)
    return all(_is_the_same_table(one, another) for one, another in pairs)


def _is_the_same_table(one: Table, another: Table) -> bool:
    if one is another:
        return True

    return replace(one, row_estimate=-1) == replace(another, row_estimate=-1)
