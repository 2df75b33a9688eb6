"""Every pattern of the product takes time in proportion to what it reads, whatever that is."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time
from typing import Any

import pytest

from tests.support.pattern_attacks import Found, attacks, patterns

CHARS = 10_000
LIMIT_S = 0.005  # for 10,000 characters, where the reference below takes as long as it should
# Of the reference on an idle machine; a slower or busier one gets as much more.
REFERENCE_S = 0.0016
REFERENCE = re.compile(r"[^\W\d_]+|\d+|\s+")
_TOO_LONG_S = 0.25  # of the processor's time
_QUADRATIC = 9  # times: four times the text takes a linear pattern 4 times as long, others 16
_TRIED = 150  # attacks on one pattern, evenly among all
_TIMED = 8  # attacks on one pattern, of those that may take long
_SURELY = 4  # times the limit, since the processor is shared
_TRIES = 8  # of which the quickest counts; a linear pattern needs one
_SCREENED = 1_200  # characters; what takes long for these is timed for all
_DOUBTFUL_S = 0.0002  # for so many; a quadratic pattern takes three times as long

# Read from a place that is known, and never searched for.
MATCHED = {"guard.rules._PART"}
# Read only texts that are shorter, or as long as their window.
BOUNDED = {
    "knowledge.values.personal_data._PRIVATE_LOOK": 200,  # of a value
    "agent.thinking.llm.reply_shapes._BEFORE": 1_000,  # of a line, up to a word
    "llm.call_failures._TOO_LONG": 2_000,  # of an endpoint's message
}

Attack = tuple[str, str, str]


@contextmanager
def _interrupted() -> Iterator[None]:
    """End the work inside when it takes more processor time than anything linear."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _TOO_LONG_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _text(attack: Attack, chars: int) -> str:
    before, unit, end = attack
    return before + unit * max(1, (chars - len(before) - len(end)) // len(unit)) + end


def _seconds(found: Found, attack: Attack, chars: int) -> float:
    """How long the pattern takes for the text, by the processor's clock, in the way that takes
    longest.
    """
    pattern, text = found.pattern, _text(attack, chars)
    given = text.encode() if isinstance(pattern.pattern, bytes) else text
    longest = 0.0
    try:
        for read in _READ_BY["match" if found.place in MATCHED else found.read_by]:
            begun = thread_time()
            with _interrupted():
                read(pattern, given)
            longest = max(longest, thread_time() - begun)
    except TimeoutError:
        return _TOO_LONG_S
    return longest


def _all_matches(pattern: "re.Pattern[Any]", text: str | bytes) -> None:
    for _ in pattern.finditer(text):
        pass


_READ_BY = {
    "": (_all_matches, re.Pattern.match, re.Pattern.fullmatch),
    "match": (re.Pattern.match,),
    "fullmatch": (re.Pattern.fullmatch,),
}


def _pace() -> float:
    """How many times slower this machine is now than an idle one."""
    text = _text(("", "ab 12 ", ""), CHARS)
    found = Found("reference", REFERENCE)
    return max(1.0, min(_seconds(found, ("", text, ""), CHARS) for _ in range(3)) / REFERENCE_S)


def _screened(found: Found, attack: Attack) -> float:
    """Seconds for a short text, as many as there may be where a few characters take too long."""
    first = _seconds(found, attack, 80)
    return first if first > LIMIT_S else _seconds(found, attack, _SCREENED)


def _is_slow(found: Found, attack: Attack) -> bool:
    """Whether the time grows faster than the text, or is beyond any bound.

    What else runs here takes time from some of the tries, not from all: each size counts as it is
    at its quickest.
    """
    chars = BOUNDED[found.place] // 4 if found.place in BOUNDED else CHARS
    taken = longer = float("inf")
    for _ in range(_TRIES):
        taken = min(taken, _seconds(found, attack, chars))
        if _is_too_long(taken):
            continue
        longer = min(longer, _seconds(found, attack, 4 * chars))
        if not _grows(taken, longer):
            return False
    return True


def _is_too_long(taken: float) -> bool:
    return taken > _SURELY * LIMIT_S and taken > _SURELY * LIMIT_S * _pace()


def _grows(taken: float, longer: float) -> bool:
    """Whether four times the text takes far more than four times as long."""
    return longer > LIMIT_S and longer > _QUADRATIC * max(taken, LIMIT_S / _QUADRATIC)


def _slow(found: Found) -> Attack | None:
    """An attack that the pattern does not stand; those that take longest for a short text are tried."""
    every = attacks(found.pattern)
    tried = every[:: len(every) // _TRIED + 1]
    screened = [(_screened(found, attack), attack) for attack in tried]
    doubtful = [one for one in screened if one[0] > _DOUBTFUL_S]
    doubtful.sort(key=lambda one: -one[0])
    for _, attack in doubtful[:_TIMED]:
        if _is_slow(found, attack):
            return attack
    return None


def test_every_pattern_is_linear() -> None:
    known = patterns()
    assert len(known) > 400, "patterns are no longer found"
    slow = {
        found.place: (found.pattern.pattern[:80], attack)
        for found in known
        if (attack := _slow(found)) is not None
    }
    assert slow == {}


@pytest.mark.parametrize(
    "pattern",
    [
        r"\w*(?:password|secret)\s*=",
        r"\s*;",
        r"\([^)]*\)",
        r"(?:a|ab|b)*c",
        r"^(?:\s*,?)*$",
        r"x(\d+)+y",
        r"/\*.*?\*/",
    ],
)
def test_a_pattern_that_is_not_linear_is_found(pattern: str) -> None:
    assert _slow(Found("here", re.compile(pattern))) is not None
