"""Makes the title of a conversation from its first question: what is asked, in a few words."""

import re
import unicodedata
from pathlib import Path

from common.word_files import Words

_WORDS = Words(Path(__file__).with_name("title_words.toml"))
_MOST_COLUMNS = 56  # of a line of text, in which a Chinese character takes two
_LEAST_COLUMNS = 28  # that a cut between two words leaves
_MOST_BEGINNINGS = 3  # "please", "show me", "the"
_BEGINNING = {
    "english": re.compile(
        rf"(?:{'|'.join(_WORDS.phrases('english.beginnings'))})\b[\s,:]*+", re.IGNORECASE
    ),
    "chinese": re.compile(rf"(?:{'|'.join(_WORDS.phrases('chinese.beginnings'))})[\s，、,]*+"),
}


def title_of_question(question: str) -> str:
    """Return a title of one line for a conversation that begins with the question."""
    line = " ".join(question.split())
    asked = line
    for _ in range(_MOST_BEGINNINGS):
        asked = _without_beginning(asked)

    return _cut(asked or line)


def _without_beginning(line: str) -> str:
    """Return the line without words that only introduce what is asked; whole if that is all."""
    for beginning in _BEGINNING.values():
        match = beginning.match(line)
        if match is not None and match.end() < len(line):
            return line[match.end() :]

    return line


def _cut(line: str) -> str:
    """Cut what is longer than a title, between two words where there are any."""
    end = _fitting(line, _MOST_COLUMNS)
    if end == len(line):
        return line

    end = _fitting(line, _MOST_COLUMNS - 1)
    between = line.rfind(" ", 0, end)
    if between >= _LEAST_COLUMNS:
        end = between

    return line[:end].rstrip() + "…"


def _fitting(line: str, columns: int) -> int:
    """Return how many characters fit into so many columns."""
    taken = 0
    for place, character in enumerate(line):
        taken += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if taken > columns:
            return place

    return len(line)
