"""Every pattern of the product takes time in proportion to what it reads, whatever that is."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from time import thread_time
from typing import Any

import pytest

from tests.support.effort import slow_beyond, tries
from tests.support.pattern_attacks import Found, attacks, patterns

CHARS = 10_000
LIMIT_S = 0.005  # for 10,000 characters, on a machine at the reference's pace
# Of the reference on an idle machine; a slower or busier one gets as much more.
REFERENCE_S = 0.0016
REFERENCE = re.compile(r"[^\W\d_]+|\d+|\s+")
_TOO_LONG_S = 0.25  # of the processor's time
_LONGER = 8  # times the text takes a linear pattern 8 times as long, others at least 64 times
_GROWS = 22  # times as long: beyond what a busy machine adds to the first, and takes from the other
_TRIED = tries(20)  # attacks on one pattern, evenly among all
_TIMED = 8  # attacks on one pattern, those that took longest for a shorter text
_SURELY = 4  # times the limit, since the processor is shared
_TRIES = 3  # of which the quickest counts
_ROUNDS = 5  # after which a pattern is called slow
_SHORTEST = 80  # characters, for which only what is exponential takes long
_SCREENED = 1_200  # characters; what takes longer than the next figure for these is timed for all
_SCREENED_S = 0.0004
_QUARTER = CHARS // 4

# Read from a place that is known, and never searched for.
KNOWN_WAYS = {"guard.rules._PART": "match", "files.reading.column_types.FORMS": "fullmatch"}
# Read only texts that are shorter, or as long as their window.
BOUNDED = {
    "knowledge.values.personal_data._PRIVATE_LOOK": 200,  # of a value
    "agent.thinking.llm.reply_shapes._BEFORE": 1_000,  # of a line, up to a word
    "llm.call_failures._TOO_LONG": 2_000,  # of an endpoint's message
}

Attack = tuple[str, str, str]


def _stop(*_: object) -> None:
    raise TimeoutError


@pytest.fixture(autouse=True)
def timer() -> Iterator[None]:
    """Let `_interrupted` end what runs, by a signal."""
    before = signal.signal(signal.SIGVTALRM, _stop)
    yield
    signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _interrupted() -> Iterator[None]:
    """End the work inside when it takes more processor time than anything linear."""
    signal.setitimer(signal.ITIMER_VIRTUAL, _TOO_LONG_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _text(attack: Attack, chars: int) -> str:
    before, unit, end = attack
    return before + unit * max(1, (chars - len(before) - len(end)) // len(unit)) + end


def _seconds(found: Found, attack: Attack, chars: int) -> float:
    """How long the pattern takes for the text, by the processor's clock, in the way that takes
    longest.
    """
    pattern, text = found.pattern, _text(attack, chars)
    given = text.encode() if isinstance(pattern.pattern, bytes) else text
    ways = _READ_BY[KNOWN_WAYS.get(found.place, found.read_by)]
    longest = 0.0
    try:
        for read in ways:
            begun = thread_time()
            with _interrupted():
                read(pattern, given)
            longest = max(longest, thread_time() - begun)
    except TimeoutError:
        return float("inf")
    return longest


def _all_matches(pattern: "re.Pattern[Any]", text: str | bytes) -> None:
    for _ in pattern.finditer(text):
        pass


_READ_BY = {
    "": (_all_matches, re.Pattern.fullmatch),  # the first begins with what `match` does
    "match": (re.Pattern.match,),
    "fullmatch": (re.Pattern.fullmatch,),
}


def _pace() -> float:
    """How many times slower this machine is now than an idle one."""
    text = _text(("", "ab 12 ", ""), CHARS)
    found = Found("reference", REFERENCE)
    return max(1.0, min(_seconds(found, ("", text, ""), CHARS) for _ in range(3)) / REFERENCE_S)


def _doubtful(found: Found) -> Iterator[Attack]:
    """Attacks that may take long: what surely does at once, then those that take longest first."""
    every = attacks(found.pattern)
    taken: dict[Attack, float] = {}
    for attack in every[:: len(every) // _TRIED + 1]:
        if _seconds(found, attack, _SHORTEST) > LIMIT_S:
            yield attack
            continue
        taken[attack] = _seconds(found, attack, _SCREENED)
        if taken[attack] > LIMIT_S:  # more than all of the text may take
            yield attack
            del taken[attack]
    for attack in sorted(taken, key=taken.__getitem__, reverse=True):
        if taken[attack] > _SCREENED_S:
            yield attack


def _is_slow(found: Found, attack: Attack) -> bool:
    """Tell whether the time grows faster than the text, or is beyond any bound.

    What else runs here takes time from some of the tries, not from all: each size counts as it is
    at its quickest. Of what reads only short texts, the time for the longest of these counts.
    """
    if found.place in BOUNDED:
        return _is_too_long(
            min(_seconds(found, attack, BOUNDED[found.place]) for _ in range(_TRIES))
        )
    if _keeps_pace(found, attack):
        return False
    taken = longer = float("inf")
    for _ in range(_TRIES):
        taken = min(taken, _seconds(found, attack, CHARS))
        if not _is_too_long(taken):
            longer = min(longer, _seconds(found, attack, _LONGER * CHARS))
            if longer < 1.5 * _LONGER * taken:
                return False
    return _is_too_long(taken) or _grows(taken, longer)


def _keeps_pace(found: Found, attack: Attack) -> bool:
    """Tell whether four times the text plainly takes no longer than four times as long, which
    costs a tenth of what a text that tells the rest apart does.
    """
    whole = _seconds(found, attack, CHARS)
    if whole > LIMIT_S:
        return False
    shorter = min(_seconds(found, attack, _QUARTER) for _ in range(_TRIES))
    return whole < 1.5 * CHARS / _QUARTER * shorter


def _is_too_long(taken: float) -> bool:
    return taken > _SURELY * LIMIT_S and taken > _SURELY * LIMIT_S * _pace()


def _grows(taken: float, longer: float) -> bool:
    return longer > LIMIT_S and longer > _GROWS * max(taken, LIMIT_S / _GROWS)


def _slow(found: Found, rounds: int = _ROUNDS) -> Attack | None:
    timed = islice(_doubtful(found), _TIMED)
    return next((one for one in timed if _is_surely_slow(found, one, rounds)), None)


def _is_surely_slow(found: Found, attack: Attack, rounds: int) -> bool:
    """Tell whether the pattern is slow each time it is asked: what else the machine does slows a
    linear one down now and then, and never each time.
    """
    return all(_is_slow(found, attack) for _ in range(rounds))


@pytest.mark.slow
def test_every_pattern_is_linear() -> None:
    known = patterns()
    assert len(known) > 400, "patterns are no longer found"
    suspects = [(found, _slow(found)) for found in known]
    # Asked once more after all the others: what slowed the machine meanwhile is over by then.
    slow = {
        found.place: (found.pattern.pattern[:80], attack)
        for found, attack in suspects
        if attack is not None and _is_surely_slow(found, attack, _ROUNDS)
    }
    assert slow == {}


@pytest.mark.parametrize(
    "pattern",
    slow_beyond(2, [r"\s*;", r"(?:a|ab|b)*c", r"x(\d+)+y", r"/\*.*?\*/"]),
)
def test_a_pattern_that_is_not_linear_is_found(pattern: str) -> None:
    assert _slow(Found("here", re.compile(pattern)), rounds=1) is not None
