"""Mistakes in a semantic file, with their lines."""

from collections.abc import Sequence
from dataclasses import dataclass

_SHOWN = 20  # problems that one message lists


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake in the file.

    Attributes:
        line: counted from 1.
        text: a sentence in English without its full stop; names the nearest real name where there
            is one.
    """

    line: int
    text: str

    def at(self, name: str) -> str:
        """Write `name:line: text` as compilers do; `name` is the file's."""
        return f"{name}:{self.line}: {self.text}"


class SemanticFileError(Exception):
    """The file can't be used.

    Attributes:
        problems: all that are known, by line; at least one.
    """

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__(
            f"The semantic file can't be used as it is.\n{problem_list(name, self.problems)}"
        )


def problem_list(name: str, problems: Sequence[Problem]) -> str:
    """List the problems, one line each, with the file's name; long lists are cut and say so."""
    lines = [problem.at(name) for problem in problems[:_SHOWN]]
    if len(problems) > _SHOWN:
        lines.append(f"… and {len(problems) - _SHOWN} more")

    return "\n".join(lines)
