"""Find the real name that is most like a mistaken one."""

from collections.abc import Iterable

from rapidfuzz import fuzz, process

_LEAST_SCORE = 60.0  # of 100
_MOST_CHARS = 200  # compared of one name


def suggestion_after(name: str, known: Iterable[str]) -> str:
    """Ask `; did you mean 'orders'?`; empty when no known name resembles `name`."""
    nearest_name = closest_name(name, known)
    if nearest_name:
        return f"; did you mean {nearest_name!r}?"

    return ""


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` resembles most, in any case; None when none does."""
    choices = sorted(set(known))
    match = process.extractOne(
        name[:_MOST_CHARS],
        choices,
        scorer=fuzz.ratio,
        processor=lambda text: text[:_MOST_CHARS].casefold(),
        score_cutoff=_LEAST_SCORE,
    )
    if match:
        return match[0]

    return None
