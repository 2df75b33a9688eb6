"""Puts tool calls together from the pieces in which endpoints send them.

OpenAI sends an index with every piece, and the id and the name with a call's first one. Others
leave out the index or the id, count from 1, put every call under index 0, repeat id or name, change
the id under way, send a name in pieces, or a whole call at once with its arguments as an object.
Two rules read all of them:

- A piece without a name goes on with the call of its id, else with the latest of its index. If it
  has neither, it goes on with the latest call; if it has an id that is new, it opens one.
- A piece with a name opens a call if its id is new. If its id is known, or it has none, it opens
  one as well, unless it continues or repeats the name of the call that it would go on with.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from llm.call_failures import CallFailed
from llm.loose_fields import dict_of, joined
from llm.tool_calls import ToolCall, read_arguments

MAX_CALLS = 64  # of one reply
MAX_CALL_CHARS = 100_000  # ids, names and arguments of all calls of one reply together
_MAX_NAME_PIECES = 64  # no name that endpoints take has more characters


class _Piece(NamedTuple):
    """One entry of `tool_calls`; fields that it leaves out are empty or None."""

    id: str
    position: int | str | None
    name: str
    arguments: str


class _OpenCall:
    """A call whose pieces are arriving."""

    def __init__(self) -> None:
        self.id = ""
        self.arguments: list[str] = []
        self._names: list[str] = []
        self._is_named_throughout = True  # every piece of the arguments came with the name

    def take(self, piece: _Piece) -> int:
        """Add a piece and return how many of its characters are kept."""
        return self._take_id(piece) + self._take_name(piece) + self._take_arguments(piece)

    def _take_id(self, piece: _Piece) -> int:
        if self.id:
            return 0
        self.id = piece.id
        return len(piece.id)

    def _take_name(self, piece: _Piece) -> int:
        if not piece.name:
            return 0
        has_whole_name = bool(self.arguments and self._names)
        if has_whole_name or len(self._names) == _MAX_NAME_PIECES:
            return 0
        self._names.append(piece.name)
        return len(piece.name)

    def _take_arguments(self, piece: _Piece) -> int:
        if not piece.arguments:
            return 0
        if self.arguments == ["{}"]:  # some gateways send it before the arguments
            self.arguments.clear()
        self.arguments.append(piece.arguments)
        self._is_named_throughout &= bool(piece.name)
        return len(piece.arguments)

    def name(self, offered: Collection[str]) -> str:
        """Return the name, which may have come in pieces or several times."""
        whole = joined(self._names)
        if whole in offered:
            return whole
        is_repeated = len(set(self._names)) == 1
        return self._names[0] if is_repeated else whole

    @property
    def is_whole(self) -> bool:
        """Tell whether the arguments came as one piece that is complete."""
        if len(self.arguments) != 1:
            return False
        return isinstance(read_arguments(self.arguments[0]), dict)

    def is_continued_by(self, piece: _Piece, offered: Collection[str]) -> bool:
        """Tell by its name whether a piece goes on with this call; ids and indexes don't count."""
        name = self.name(offered)
        has_same_name = piece.name == name
        if has_same_name and piece.id and not piece.arguments:
            return True  # it says nothing new
        if self.arguments:
            return has_same_name and self._is_named_throughout and not self.is_whole
        if has_same_name:
            return True
        are_both_offered = piece.name in offered and name in offered
        return not are_both_offered


class CallAssembly:
    """The tool calls of one reply, as far as they have arrived.

    Args:
        offered: the names of the tools that the model was told of.
        taken: ids that a call can't have, because earlier calls of the conversation have them.
        most_chars: ids, names and arguments of all calls together, at most `MAX_CALL_CHARS`.
    """

    def __init__(
        self,
        offered: Collection[str],
        taken: Collection[str] = (),
        *,
        most_chars: int = MAX_CALL_CHARS,
    ) -> None:
        self._most_chars = min(most_chars, MAX_CALL_CHARS)
        self._offered = offered
        self._taken = taken
        self._calls: list[_OpenCall] = []
        self._by_id: dict[str, _OpenCall] = {}
        self._by_index: dict[int | str, _OpenCall] = {}
        self._size = 0

    def take_delta(self, delta: dict[str, Any]) -> None:
        """Add the pieces that one delta of a stream holds.

        Raises:
            CallFailed: the calls have become too many or too long.
        """
        for piece in _pieces(delta):
            call = self._call_of(piece) or self._open(piece)
            self._add(call, piece)

    def take_message(self, message: dict[str, Any]) -> None:
        """Add the calls of a reply that arrived whole; raise as `take_delta` does."""
        for piece in _pieces(message):
            self._add(self._open(piece), piece)

    def calls(self, *, is_cut: bool) -> tuple[ToolCall, ...]:
        """Return the calls in the order in which they were opened.

        Args:
            is_cut: the reply ended before the model was finished.
        """
        taken = set(self._taken)
        return tuple(
            self._closed(call, taken, is_cut)
            for call in self._calls
            if call.arguments or self._name(call)
        )

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
        """Return the call that the piece goes on with; None when it opens one."""
        same_id = self._by_id.get(piece.id) if piece.id else None
        same_index = self._call_at(piece.position)
        if not piece.name:
            return self._call_of_nameless(piece, same_id, same_index)
        earlier = same_id if piece.id else same_index
        if earlier is None or not earlier.is_continued_by(piece, self._offered):
            return None
        return earlier

    def _call_of_nameless(
        self, piece: _Piece, same_id: _OpenCall | None, same_index: _OpenCall | None
    ) -> _OpenCall | None:
        # Some endpoints give all calls of a reply the same id; then the index tells them apart.
        if same_index and same_index.id == piece.id:
            return same_index
        earlier = same_id or same_index
        if earlier or piece.id:
            return earlier
        return self._latest

    def _call_at(self, index: int | str | None) -> _OpenCall | None:
        return self._latest if index is None else self._by_index.get(index)

    @property
    def _latest(self) -> _OpenCall | None:
        return self._calls[-1] if self._calls else None

    def _open(self, piece: _Piece) -> _OpenCall:
        if len(self._calls) == MAX_CALLS:
            raise CallFailed("oversized")
        call = _OpenCall()
        self._calls.append(call)
        if piece.position is not None:
            self._by_index[piece.position] = call
        return call

    def _add(self, call: _OpenCall, piece: _Piece) -> None:
        self._size += call.take(piece)
        if self._size > self._most_chars:
            raise CallFailed("oversized")
        if piece.id == call.id:
            self._by_id[piece.id] = call


def _pieces(message: dict[str, Any]) -> Sequence[_Piece]:
    entries = message.get("tool_calls") or message.get("function_call")
    if isinstance(entries, dict):
        entries = [entries]  # one call instead of a list, or the first form of function calls
    if not isinstance(entries, list):
        return ()
    return [_piece(entry) for entry in entries if isinstance(entry, dict)]


def _piece(entry: dict[str, Any]) -> _Piece:
    function = dict_of(entry.get("function")) or entry
    call_id, index, name = entry.get("id"), entry.get("index"), function.get("name")
    return _Piece(
        id=str(call_id) if isinstance(call_id, str | int) else "",
        position=index if isinstance(index, str | int) else None,
        name=name if isinstance(name, str) else "",
        arguments=_arguments(function.get("arguments")),
    )


def _arguments(value: Any) -> str:
    """Return arguments as text; some endpoints send the value, or `{}` while there is none yet."""
    if isinstance(value, str):
        return value
    if value is None or value == {}:
        return ""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError as exc:
        raise CallFailed("unusable") from exc
