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
        id_size = self._take_id(piece)
        name_size = self._take_name(piece)
        return id_size + name_size + self._take_arguments(piece)

    def _take_id(self, piece: _Piece) -> int:
        if self.id:
            return 0

        self.id = piece.id
        return len(piece.id)

    def _take_name(self, piece: _Piece) -> int:
        if not piece.name:
            return 0
        if len(self._names) == _MAX_NAME_PIECES:
            return 0

        has_whole_name = bool(self.arguments and self._names)
        if has_whole_name:
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
        if is_repeated:
            return self._names[0]

        return whole

    @property
    def is_whole(self) -> bool:
        """Tell whether the arguments came as one piece that is complete."""
        if len(self.arguments) != 1:
            return False

        arguments = read_arguments(self.arguments[0])
        return isinstance(arguments, dict)

    def is_continued_by(self, piece: _Piece, offered: Collection[str]) -> bool:
        """Tell by its name whether a piece goes on with this call; ids and indexes don't count."""
        name = self.name(offered)
        if piece.name != name:
            are_both_offered = piece.name in offered and name in offered
            return not self.arguments and not are_both_offered

        says_nothing_new = piece.id != "" and piece.arguments == ""
        if says_nothing_new or not self.arguments:
            return True

        return self._is_named_throughout and not self.is_whole


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
            call = self._call_of(piece)
            if call is None:
                call = self._open_call(piece)

            self._add(call, piece)

    def take_message(self, message: dict[str, Any]) -> None:
        """Add the calls of a reply that arrived whole; raise as `take_delta` does."""
        for piece in _pieces(message):
            call = self._open_call(piece)
            self._add(call, piece)

    def calls(self, *, is_cut: bool) -> tuple[ToolCall, ...]:
        """Return the calls in the order in which they were opened.

        Args:
            is_cut: the reply ended before the model was finished.
        """
        taken = set(self._taken)
        closed = []
        for call in self._calls:
            says_something = call.arguments or self._name(call)
            if says_something:
                closed.append(self._finished_call(call, taken, is_cut))

        return tuple(closed)

    def _finished_call(self, call: _OpenCall, taken: set[str], is_cut: bool) -> ToolCall:
        call_id = joined([call.id])
        is_usable = call_id != "" and call_id not in taken
        if not is_usable:
            call_id = f"call_{uuid4().hex}"

        taken.add(call_id)
        text = joined(call.arguments)
        # Only the last call may have been cut before its arguments began.
        has_begun = text != "" or call is self._calls[-1]
        arguments = read_arguments(text, is_cut=is_cut and has_begun)
        return ToolCall(call_id, self._name(call), arguments)

    def _name(self, call: _OpenCall) -> str:
        return call.name(self._offered)

    def _call_of(self, piece: _Piece) -> _OpenCall | None:
        """Return the call that the piece goes on with; None when it opens one."""
        same_id = None
        if piece.id:
            same_id = self._by_id.get(piece.id)

        same_index = self._call_at(piece.position)
        if not piece.name:
            return self._call_of_nameless(piece, same_id, same_index)

        earlier = same_index
        if piece.id:
            earlier = same_id
        if earlier is None:
            return None
        if earlier.is_continued_by(piece, self._offered):
            return earlier

        return None

    def _call_of_nameless(
        self, piece: _Piece, same_id: _OpenCall | None, same_index: _OpenCall | None
    ) -> _OpenCall | None:
        # Some endpoints give all calls of a reply the same id; then the index tells them apart.
        if same_index is not None and same_index.id == piece.id:
            return same_index
        if same_id is not None:
            return same_id
        if same_index is not None:
            return same_index
        if piece.id:
            return None

        return self._latest

    def _call_at(self, index: int | str | None) -> _OpenCall | None:
        if index is None:
            return self._latest

        return self._by_index.get(index)

    @property
    def _latest(self) -> _OpenCall | None:
        if self._calls:
            return self._calls[-1]

        return None

    def _open_call(self, piece: _Piece) -> _OpenCall:
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

    pieces = []
    for entry in entries:
        if isinstance(entry, dict):
            pieces.append(_piece(entry))

    return pieces


def _piece(entry: dict[str, Any]) -> _Piece:
    function = dict_of(entry.get("function")) or entry
    call_id = entry.get("id")
    if not isinstance(call_id, str | int):
        call_id = ""

    index = entry.get("index")
    if not isinstance(index, str | int):
        index = None

    name = function.get("name")
    if not isinstance(name, str):
        name = ""

    arguments = _arguments(function.get("arguments"))
    return _Piece(str(call_id), index, name, arguments)


def _arguments(value: Any) -> str:
    """Return arguments as text; some endpoints send the value, or `{}` while there is none yet."""
    if isinstance(value, str):
        return value
    if value in (None, {}):
        return ""

    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError as exc:
        raise CallFailed("unusable") from exc
