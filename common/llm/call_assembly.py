"""Puts tool calls together from the pieces in which endpoints send them.

OpenAI sends an index with every piece, and the id and the name with a call's first one. Others leave out the index or
the id, count from 1, put every call under index 0, repeat id or name, change the id under way, send a name in pieces,
or a whole call at once with its arguments as an object. Two rules read all of them:

- A piece without a name goes on with the call of its id, else with the latest of its index. If it has neither, it goes
  on with the latest call; if it has an id that is new, it opens one.
- A piece with a name opens a call if its id is new. If its id is known, or it has none, it opens one as well, unless it
  continues or repeats the name of the call that it would go on with.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from common.llm.call_failures import CallFailed
from common.llm.loose_fields import dict_of, joined
from common.llm.tool_calls import ToolCall, read_arguments

MAX_CALLS = 64  # of one reply
MAX_CALL_CHARS = 100_000  # ids, names and arguments of all calls of one reply together
_MAX_NAME_PIECES = 64  # no name that endpoints take has more characters


class _Piece(NamedTuple):
    """What one entry of `tool_calls` says, `place` being its index; what it leaves out is empty or None."""

    id: str
    place: int | str | None
    name: str
    arguments: str


class _OpenCall:
    """A call whose pieces are arriving."""

    def __init__(self, piece: _Piece) -> None:
        self.id = ""
        self.place = piece.place
        self.arguments: list[str] = []
        self._names: list[str] = []
        self._is_named_throughout = True  # whether every piece of the arguments came with the name

    def take(self, piece: _Piece) -> int:
        """Adds what the piece says; gives the number of characters that are kept of it."""
        kept = len(piece.arguments)
        if not self.id:
            self.id = piece.id
            kept += len(piece.id)
        if piece.name and not (self.arguments and self._names) and len(self._names) < _MAX_NAME_PIECES:
            self._names.append(piece.name)
            kept += len(piece.name)
        if piece.arguments:
            if self.arguments == ["{}"]:  # some gateways send it before the arguments
                self.arguments.clear()
            self.arguments.append(piece.arguments)
            self._is_named_throughout &= bool(piece.name)
        return kept

    def name(self, offered: Collection[str]) -> str:
        """The name of which these are pieces, or repetitions."""
        whole = joined(self._names)
        is_repeated = len(set(self._names)) == 1 and (whole not in offered)
        return self._names[0] if is_repeated else whole

    @property
    def is_whole(self) -> bool:
        """Whether its arguments came as one piece that is complete."""
        return len(self.arguments) == 1 and isinstance(read_arguments(self.arguments[0]), dict)

    def is_continued_by(self, piece: _Piece, offered: Collection[str]) -> bool:
        """Whether a piece with a name goes on with this call, as far as neither its id nor its index says so."""
        name = self.name(offered)
        if piece.id and piece.name == name and not piece.arguments:
            return True  # it says nothing new
        if self.arguments:
            return self._is_named_throughout and piece.name == name and not self.is_whole
        return piece.name == name or piece.name not in offered or name not in offered


class CallAssembly:
    """The tool calls of one reply, as far as they have arrived.

    Args:
        offered: the names of the tools that the model was told of.
        taken: ids that a call can't have, because earlier calls of the conversation have them.
    """

    def __init__(self, offered: Collection[str], taken: Collection[str] = ()) -> None:
        self._offered = offered
        self._taken = taken
        self._calls: list[_OpenCall] = []
        self._by_id: dict[str, _OpenCall] = {}
        self._by_index: dict[int | str, _OpenCall] = {}
        self._size = 0

    def take_delta(self, delta: dict[str, Any]) -> None:
        """The pieces that one delta of a stream holds.

        Raises:
            CallFailed: the calls have become too many or too long.
        """
        for piece in _pieces(delta):
            call = self._call_of(piece) or self._open(piece)
            self._add(call, piece)

    def take_message(self, message: dict[str, Any]) -> None:
        """The calls of a reply that arrived whole; raises as `take_delta` does."""
        for piece in _pieces(message):
            self._add(self._open(piece), piece)

    def calls(self, *, is_cut: bool) -> tuple[ToolCall, ...]:
        """The calls in the order in which they were opened; `is_cut`: the model was not finished."""
        taken = set(self._taken)
        return tuple(self._closed(call, taken, is_cut) for call in self._calls if call.arguments or self._name(call))

    def _closed(self, call: _OpenCall, taken: set[str], is_cut: bool) -> ToolCall:
        call_id = joined([call.id])
        if not call_id or call_id in taken:
            call_id = f"call_{uuid4().hex}"
        taken.add(call_id)
        text = joined(call.arguments)
        may_be_cut = is_cut and bool(text or call is self._calls[-1])
        return ToolCall(call_id, self._name(call), read_arguments(text, is_cut=may_be_cut))

    def _name(self, call: _OpenCall) -> str:
        return call.name(self._offered)

    def _call_of(self, piece: _Piece) -> _OpenCall | None:
        """The call that the piece goes on with; None: it opens one."""
        latest = self._calls[-1] if self._calls else None
        same_id = self._by_id.get(piece.id) if piece.id else None
        same_index = latest if piece.place is None else self._by_index.get(piece.place)
        if not piece.name:
            if same_index and same_index.id == piece.id:  # some endpoints give all calls of a reply the same id
                return same_index
            return same_id or same_index or (None if piece.id else latest)
        earlier = same_id if piece.id else same_index
        return earlier if earlier and earlier.is_continued_by(piece, self._offered) else None

    def _open(self, piece: _Piece) -> _OpenCall:
        if len(self._calls) == MAX_CALLS:
            raise CallFailed("oversized")
        call = _OpenCall(piece)
        self._calls.append(call)
        if piece.place is not None:
            self._by_index[piece.place] = call
        return call

    def _add(self, call: _OpenCall, piece: _Piece) -> None:
        self._size += call.take(piece)
        if self._size > MAX_CALL_CHARS:
            raise CallFailed("oversized")
        if piece.id == call.id:
            self._by_id[piece.id] = call


def _pieces(message: dict[str, Any]) -> Sequence[_Piece]:
    entries = message.get("tool_calls") or message.get("function_call")
    if isinstance(entries, dict):  # one call instead of a list of calls, or the way of the first models with functions
        entries = [entries]
    return [_piece(entry) for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else ()


def _piece(entry: dict[str, Any]) -> _Piece:
    function = dict_of(entry.get("function")) or entry
    call_id, index, name = entry.get("id"), entry.get("index"), function.get("name")
    return _Piece(
        id=str(call_id) if isinstance(call_id, str | int) else "",
        place=index if isinstance(index, str | int) else None,
        name=name if isinstance(name, str) else "",
        arguments=_arguments(function.get("arguments")),
    )


def _arguments(value: Any) -> str:
    """The text of arguments; some endpoints send the value itself, and an empty one while there is none yet."""
    if isinstance(value, str):
        return value
    if value is None or value == {}:
        return ""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError as exc:
        raise CallFailed("unusable") from exc
