"""How thoroughly properties are tried: the same few examples in each run, or, to look for mistakes,
many others.
"""

import os

EXPLORES = os.environ.get("CITU_TEST_EXPLORE", "") not in ("", "0")
"""Whether this run looks for mistakes: its examples are random, so it may fail for what nobody has
just changed.
"""

_TIMES_MORE = 20


def tries(usual: int) -> int:
    """Return how many examples a property is tried with, which is `usual` unless one explores."""
    return usual * _TIMES_MORE if EXPLORES else usual
