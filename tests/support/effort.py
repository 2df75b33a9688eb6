"""How thoroughly properties are tried: the same few examples in each run, or, to look for mistakes,
many others.
"""

import os

EXPLORES = os.environ.get("CITU_TEST_EXPLORE", "") not in ("", "0")
"""Whether this run looks for mistakes: its examples are random, so it may fail for what nobody has
just changed.
"""

_TIMES_MORE = 10


def tries(usual: int) -> int:
    """Return the number of examples of a property that is tried with `usual` ones when the tests
    run as always.
    """
    return usual * _TIMES_MORE if EXPLORES else usual
