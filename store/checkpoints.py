"""What the adapters of LangGraph's checkpoints share: how state is serialized, its size limit, and
versions.

A checkpoint is the state of a graph between two steps. With it any process can go on with a run
that waits for its user, or whose worker died. `thread_id` is the run's id.

A worker may lose its run to another without noticing, because it was stopped or slow. What it does
within `held_by` is written only while the run is its own, which the store checks with the write.
"""

import dataclasses
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    JsonPlusSerializer,
)
from langgraph.types import Send

from common import actor, inquiry, text, values
from common.errors import StateTooLarge

MAX_BYTES = 8 * 1024 * 1024  # of what one step adds to a run's state
_Name = tuple[str, ...]  # module and class

_OPTION = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
    | ormsgpack.OPT_REPLACE_SURROGATES
)
_BUILT_IN: frozenset[_Name] = frozenset({("builtins", "tuple"), ("builtins", "int")})
_NAMING_METHODS = ("model_dump", "dict", "_asdict")  # of types that LangGraph writes by name
_LIBRARIES = ("langgraph", "langchain_core")  # whose own types the serializer knows
_plain = JsonPlusSerializer()
_room: ContextVar[list[int] | None] = ContextVar(
    "room", default=None
)  # bytes that may still be written

holder: ContextVar[str | None] = ContextVar("holder", default=None)  # id of the worker that writes


@contextmanager
def held_by(worker_id: str) -> Iterator[None]:
    """Have checkpoints that are written in this context refused once another worker has the run.

    `LeaseLost` is what the writes then raise. Tasks that are started in the context are in it too.
    """
    token = holder.set(worker_id)
    try:
        yield
    finally:
        holder.reset(token)


def name_of(kind: type) -> _Name:
    """Return how a type is named in a checkpoint."""
    return (kind.__module__, kind.__name__)


_OURS = frozenset(
    name_of(each)
    for module in (actor, inquiry, text, values)
    for each in vars(module).values()
    if isinstance(each, type)
    and dataclasses.is_dataclass(each)
    and each.__module__ == module.__name__
)


class StateSerializer(JsonPlusSerializer):
    """LangGraph's serializer, changed so that state comes back as it was.

    LangGraph's own gives lists for tuples, so that dataclasses are no longer equal; gives plain
    dicts, without warning, for types that it was not told of; and takes no integers beyond 64 bits.
    This one keeps tuples and all integers, and refuses to write a type that it could not read back.
    Like LangGraph's, it replaces lone surrogates by `?`.

    Args:
        kinds: names of the dataclasses, enums and other types that may occur, beside those of
            `common`.
    """

    def __init__(self, kinds: Iterable[_Name] = ()) -> None:
        self._kinds = _OURS | frozenset(kinds)
        super().__init__(allowed_msgpack_modules=self._kinds | _BUILT_IN)

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[_Name | type]) -> "StateSerializer":
        """Return a copy that also knows these types; LangGraph names those of a graph's state."""
        kinds = set(self._kinds)
        for each in extra_allowlist:
            kinds.add(name_of(each) if isinstance(each, type) else each)

        return StateSerializer(kinds)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return the format of the bytes, and the bytes for `obj`.

        Raises:
            StateTooLarge: all that was serialized within `limited` is larger than `MAX_BYTES`.
            TypeError: `obj` can't be written, or could not be read back.
        """
        is_raw = obj is None or isinstance(obj, bytes | bytearray)
        kind, data = super().dumps_typed(obj) if is_raw else ("msgpack", self._encode(obj))
        room = _room.get()
        if room is not None:
            room[0] -= len(data)
            if room[0] < 0:
                raise StateTooLarge(MAX_BYTES)

        return kind, data

    def _encode(self, value: Any) -> bytes:
        return ormsgpack.packb(value, default=self._encode_other, option=_OPTION)

    def _encode_other(self, value: Any) -> Any:
        """Encode a value that msgpack has no type for."""
        kind = type(value)
        if kind in (tuple, set, frozenset):
            return self._made(EXT_CONSTRUCTOR_SINGLE_ARG, kind, list(value))
        if kind is int:
            return self._made(EXT_CONSTRUCTOR_SINGLE_ARG, kind, str(value))
        if isinstance(value, Send):
            timeout = getattr(value, "timeout", None)
            arguments = (
                [value.node, value.arg] if timeout is None else [value.node, value.arg, timeout]
            )
            return self._made(EXT_CONSTRUCTOR_POS_ARGS, kind, arguments)

        self._check(value)
        if dataclasses.is_dataclass(value) and not hasattr(value, "model_dump"):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return self._made(EXT_CONSTRUCTOR_KW_ARGS, kind, fields)

        # LangGraph writes everything else, as an extension, which is copied here.
        return ormsgpack.unpackb(_plain.dumps_typed(value)[1], ext_hook=ormsgpack.Ext)

    def _made(self, code: int, kind: type, arguments: Any) -> ormsgpack.Ext:
        """Return an extension with a type and the arguments to call it with."""
        return ormsgpack.Ext(code, self._encode([*name_of(kind), arguments]))

    def _check(self, value: Any) -> None:
        kind = type(value)
        if name_of(kind) in self._kinds:
            return

        library = kind.__module__.partition(".")[0]
        if library in _LIBRARIES or not _is_made_by_name(value):
            return

        raise TypeError(
            f"{kind.__module__}.{kind.__name__} is none of the types that a checkpoint may hold"
        )


def _is_made_by_name(value: Any) -> bool:
    """Tell whether LangGraph would write the value with the name of its type."""
    if isinstance(value, Enum) or dataclasses.is_dataclass(value):
        return True

    return any(hasattr(value, method) for method in _NAMING_METHODS)


def thread_of(config: RunnableConfig) -> str:
    """Return the thread that a config names."""
    return str(config["configurable"]["thread_id"])


@contextmanager
def limited() -> Iterator[None]:
    """Limit all that is serialized in this context, threads included, to `MAX_BYTES`."""
    token = _room.set([MAX_BYTES])
    try:
        yield
    finally:
        _room.reset(token)


class Checkpoints(BaseCheckpointSaver[str]):
    """Implements what both adapters do alike. Synchronous methods raise `NotImplementedError`.

    A flow whose state holds types of its own compiles its graph with `with_allowlist`'s copy, which
    knows them.
    """

    def __init__(self) -> None:
        super().__init__(serde=StateSerializer())

    def get_next_version(
        self,
        current: str | None,
        channel: None,  # noqa: ARG002 - LangGraph's signature
    ) -> str:
        """Return the version of a channel's value after `current`.

        A random tail keeps apart the values that two processes make from one checkpoint, because a
        worker that counts as dead may still go on.
        """
        number = 1 if current is None else int(str(current).split(".")[0]) + 1
        return f"{number:032}.{random.random():018.16f}"  # noqa: S311 - nobody gains by guessing it
