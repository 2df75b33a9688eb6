"""Names of models and of what their SELECTs make, each given once."""

import re
from collections.abc import Iterable

MOST_MODEL_CHARS = 55
MOST_NAME_BYTES = 63
_UNREADABLE = re.compile(r"[\x00-\x1f\x7f]+|\{[{%#]")
_UNUSABLE = re.compile("[^a-z0-9_]+")


def ascii_name(text: str) -> str:
    """Return what of a name `[a-z0-9_]` can say; may be empty."""
    return _UNUSABLE.sub("_", text.lower()).strip("_")


def readable_name(name: str) -> str:
    """Return a column's name without control characters and templates' marks."""
    return _UNREADABLE.sub("_", name)


class UniqueNames:
    """Gives names that differ even where letters' case doesn't count, as in dbt."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.lower() for name in taken}

    def model(self, layer: str, *parts: str) -> str:
        """Return a name for a model: the layer, then what its parts have in plain letters."""
        words = [layer]
        for part in parts:
            word = ascii_name(part).removeprefix(f"{layer}_")
            if word:
                words.append(word)

        base = "_".join(words)
        if base == layer:
            base = f"{layer}_source"

        return self.technical(base[: MOST_MODEL_CHARS - 4].rstrip("_"))

    def column(self, name: str, source: str) -> str:
        """Return a name for a source's column: its own, or together with the source's."""
        together = f"{source}_{name}" if source else f"{name}_2"
        for candidate in (name, together):
            is_short = len(candidate.encode()) <= MOST_NAME_BYTES
            if is_short and candidate.lower() not in self._taken:
                self._taken.add(candidate.lower())
                return candidate

        return self.technical("etl_column")

    def technical(self, base: str) -> str:
        """Return a name that is not taken: `base` itself, or with a number behind it."""
        candidate, number = base, 1
        while candidate.lower() in self._taken:
            number += 1
            candidate = f"{base}_{number}"

        self._taken.add(candidate.lower())
        return candidate
