"""Tell what built-ins cost that nothing interrupts, from how long their arguments are.

With one long argument a built-in is called if it is known to take time in proportion; with two, if
its time is known as well, and short. What is not known is refused.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.word_files import words
from guard.sizes import Size, product

_FILE = Path(__file__).with_name("builtin_costs.toml")
_TABLES: dict[str, Any] = tomllib.loads(_FILE.read_text("utf-8"))
_COPIED_NS = 0.2  # for each character that is only read or copied
_LINEAR_FUNCTIONS = words(_TABLES["linear"]["functions"])
_LINEAR_OPERATORS = words(_TABLES["linear"]["operators"])
LINEAR_TYPES = words(_TABLES["linear"]["types"])
_PAIR_FUNCTIONS: Mapping[str, float] = _TABLES["pairs"]["functions"]
_PAIR_OPERATORS: Mapping[str, float] = _TABLES["pairs"]["operators"]
TRUTH_OPERATORS = words(_TABLES["truths"]["operators"])
NUMBERS: Mapping[str, float] = _TABLES["numbers"]
FIELDS: Mapping[str, tuple[float, float]] = _TABLES["fields"]
EXPANSION: Mapping[str, float] = _TABLES["expansion"]
SPLITTING: Mapping[str, float] = _TABLES["splitting"]
NUMBERS_OF: Mapping[str, frozenset[str]] = {
    kind: words(names) for kind, names in _TABLES["numbers_of"].items()
}


def call_ns(name: str, sizes: Sequence[Size], *, is_builtin: bool = True) -> float:
    """Return how long a call takes that nothing interrupts; infinity where that is not known.

    Args:
        is_builtin: others were allowed by the operator, who knows them.
    """
    if not is_builtin:
        return 0.0

    return _ns(sizes, name in _LINEAR_FUNCTIONS, _PAIR_FUNCTIONS.get(name))


def operator_ns(symbol: str, left: Size, right: Size) -> float:
    return _ns((left, right), symbol in _LINEAR_OPERATORS, _PAIR_OPERATORS.get(symbol))


def _ns(sizes: Sequence[Size], is_linear: bool, pair_ns: float | None) -> float:
    """Return how many nanoseconds a call may take; infinite where nothing bounds it.

    Args:
        sizes: of the arguments.
        is_linear: whether it only copies its arguments.
        pair_ns: for each pair of a character of the first argument and one of another; None: it is
            unknown.
    """
    has_long = any(size.is_long for size in sizes)
    if not has_long:
        return 0.0

    lengths = [size.length for size in sizes]
    copied = _COPIED_NS * sum(lengths)
    if is_linear:
        return copied
    if pair_ns is None:
        return math.inf

    first, *others = lengths
    longest = max(others, default=1.0)
    pairs = product(first, max(longest, 1.0))
    return copied + pair_ns * pairs
