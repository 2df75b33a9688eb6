"""The form in which both adapters keep records.

Users choose ids, questions and titles: any length, any character, lone surrogates included. Keys
are digests of ids; everything else is JSON in ASCII.
"""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any, get_args

import simplejson

from common.timestamps import utc_text
from common.values import Turn
from store import InvalidCursor, RunHead, RunRecord, RunState, Waiting
from store.titles import title_of_question

_KEY_BYTES = 16
_ENCODER = simplejson.JSONEncoder(
    use_decimal=True, ignore_nan=True, separators=(",", ":"), namedtuple_as_object=False
)
_DECODER = simplejson.JSONDecoder(parse_float=Decimal)
_PLAIN_DECODER = simplejson.JSONDecoder()
_STATES: Mapping[str, RunState] = {each: each for each in get_args(RunState)}
_PLACE_CURSOR = re.compile(r"([0-9]{1,16})-([0-9a-f]{32})")
_TURN_CURSOR = re.compile(r"[1-9][0-9]{0,14}")


def key(*ids: str) -> bytes:
    """Return a digest of 16 bytes for ids of any length; different ids have different digests."""
    digest = blake2b(digest_size=_KEY_BYTES)
    for text in ids:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)

    return digest.digest()


def to_text(value: Any) -> str:
    """Write JSON in ASCII; decimals keep their digits."""
    return str(_ENCODER.encode(value))


def from_text(text: str | bytes) -> Any:
    """Read what `to_text` wrote; fractions become decimals."""
    return _DECODER.decode(text if isinstance(text, str) else text.decode())


def plain_from_text(text: str | bytes) -> Any:
    """Read what `to_text` wrote; fractions become floats."""
    return _PLAIN_DECODER.decode(text if isinstance(text, str) else text.decode())


def title_of(turn: Turn) -> str:
    """Return the title of a conversation that starts with `turn`."""
    return title_of_question(turn.question)


def head_to_text(head: RunHead) -> str:
    """Return the head as JSON, for the store."""
    return to_text(vars(head))


def head_from_text(text: str | bytes) -> RunHead:
    """Return a head that was kept."""
    return RunHead(**_known_fields(RunHead, plain_from_text(text)))


def waiting_to_text(waiting: Waiting) -> str:
    """Return the question as JSON, for the store."""
    return to_text(
        {
            "interrupt_id": waiting.interrupt_id,
            "flow": waiting.flow,
            "request": dict(waiting.request),
        }
    )


def record_from_texts(
    head: str | bytes,
    state: str,
    last_seq: int,
    is_abandoned: bool,
    worker_id: str | bytes | None,
    waiting: str | bytes | None,
    answer: str | bytes | None,
    takeovers: int,
) -> RunRecord:
    """Return a run that was kept. `worker_id` is given when another worker than the head's has the
    run.
    """
    about = head_from_text(head)
    return RunRecord(
        head=about if worker_id is None else replace(about, worker_id=from_text(worker_id)),
        state=_STATES[state],
        last_seq=last_seq,
        is_abandoned=is_abandoned,
        waiting=None
        if waiting is None
        else Waiting(**_known_fields(Waiting, plain_from_text(waiting))),
        answer=None if answer is None else plain_from_text(answer),
        takeovers=takeovers,
    )


FAILED = '{"failure":{'
"""How the text of a turn begins that ended in an error; that of no other turn does."""


def turn_to_text(turn: Turn) -> str:
    """Return the turn as it is kept; of one that ended in an error, that comes first, so that
    stores can tell by it.
    """
    values = dict(vars(turn))
    failure = values.pop("failure")
    return to_text(values if failure is None else {"failure": dict(failure), **values})


def turn_from_text(text: str | bytes) -> Turn:
    """Return a turn that was kept."""
    values = _known_fields(Turn, from_text(text))
    for name in ("rows", "all_rows"):
        values[name] = tuple(tuple(row) for row in values.get(name, ()))

    return Turn(**{**values, "columns": tuple(values.get("columns", ()))})


def _known_fields(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` without fields that a newer version may have added."""
    names = values.keys() & {field.name for field in fields(kind)}
    return {name: values[name] for name in names}


def timestamp(microseconds: int) -> str:
    """Write microseconds since 1970 as ISO 8601: UTC, with milliseconds."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return utc_text(datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest))


def place_cursor(microseconds: int, record_key: bytes) -> str:
    """Return the cursor for what stands after this record in a list by time, such as conversations
    by their latest turn.
    """
    return f"{microseconds}-{record_key.hex()}"


def parse_place_cursor(cursor: str) -> tuple[int, bytes]:
    """Return microseconds and key of the last record seen.

    Raises:
        InvalidCursor: `place_cursor` did not make it.
    """
    match = _PLACE_CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidCursor

    return int(match[1]), bytes.fromhex(match[2])


def parse_turn_cursor(cursor: str) -> int:
    """Return the number of the earliest turn seen.

    Raises:
        InvalidCursor: it is no such number.
    """
    if not _TURN_CURSOR.fullmatch(cursor):
        raise InvalidCursor

    return int(cursor)
