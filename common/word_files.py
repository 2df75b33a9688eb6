"""Words kept as data: TOML files of words, read once and checked while they are read."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


class WordsError(ValueError):
    """A file of words is invalid; the message names the file, the place in it and the mistake."""


class Words:
    """The words of one file, by the dotted names of its tables (`talk.greetings`).

    A text holds phrases, separated by `|` or by the ends of lines. A list holds one pattern or sentence per element.

    Args:
        path: the TOML file.

    Raises:
        WordsError: the file is no TOML, or says something twice in one place.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.name
        try:
            tables = tomllib.loads(path.read_text("utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise WordsError(f"{path.name}: {error}") from error
        self._lists = dict(self._read("", tables))

    def _read(self, place: str, value: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
        if isinstance(value, Mapping):
            for name, inner in value.items():
                yield from self._read(f"{place}.{name}" if place else name, inner)
            return
        phrases = tuple(value) if isinstance(value, list) else tuple(_phrases(value)) if isinstance(value, str) else ()
        if not phrases or not all(isinstance(phrase, str) for phrase in phrases):
            raise self.error(place, "holds neither a text nor a list of texts")
        if twice := next((phrase for number, phrase in enumerate(phrases) if phrase in phrases[:number]), None):
            raise self.error(place, f"says {twice!r} twice")
        yield place, phrases

    @property
    def places(self) -> tuple[str, ...]:
        """The dotted names of the tables that hold words."""
        return tuple(self._lists)

    def error(self, place: str, trouble: str) -> WordsError:
        """What is wrong with the words at `place`."""
        return WordsError(f"{self._name}: {place} {trouble}")

    def phrases(self, place: str) -> tuple[str, ...]:
        """The words at `place`, in the order of the file.

        Raises:
            WordsError: there are none.
        """
        if place not in self._lists:
            raise self.error(place, "is missing")
        return self._lists[place]

    def text(self, place: str) -> str:
        """The one text at `place`; characters that are written as separate words are put together."""
        return "".join(self.phrases(place))

    def one_of(self, place: str) -> frozenset[str]:
        """The words at `place` as a set."""
        return frozenset(self.phrases(place))

    def pattern(self, place: str, begin: str = "", end: str = "", flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
        """Any of the words at `place`, between two patterns."""
        return re.compile(f"{begin}(?:{'|'.join(self.phrases(place))}){end}", flags)

    def get(self, place: str) -> tuple[str, ...]:
        """The words at `place`; none where the file has no such place, because its language needs none."""
        return self._lists.get(place, ())

    def under(self, table: str) -> dict[str, tuple[str, ...]]:
        """The words of a table by their names in it (`money.small`), in the order of the file."""
        begin = f"{table}."
        return {place[len(begin) :]: words for place, words in self._lists.items() if place.startswith(begin)}


def _phrases(text: str) -> Iterator[str]:
    return (phrase for line in text.splitlines() for part in line.split("|") if (phrase := part.strip()))


class Languages:
    """The words of both languages, `english.toml` and `chinese.toml` of one folder.

    English words are found as whole words, Chinese ones anywhere, since no blanks part them.
    """

    def __init__(self, folder: Path) -> None:
        self.english, self.chinese = Words(folder / "english.toml"), Words(folder / "chinese.toml")

    def both(self, place: str) -> tuple[str, ...]:
        """The English words at `place`, then the Chinese ones; one language may have none.

        Raises:
            WordsError: neither has any.
        """
        return (*self.english.get(place), *self.chinese.get(place)) or self.chinese.phrases(place)

    def any_of(self, place: str) -> str:
        """A pattern of the words at `place`, as they stand there."""
        return "|".join(self.both(place))

    def found(self, place: str) -> re.Pattern[str]:
        """Finds any of the words at `place`."""
        english = (rf"\b(?:{'|'.join(words)})\b" for words in (self.english.get(place),) if words)
        return re.compile("|".join((*english, *self.chinese.get(place))), re.IGNORECASE)

    def begins(self, place: str) -> re.Pattern[str]:
        """Finds any of the words at `place` where a text begins, signs before it aside."""
        return re.compile(rf"^\W*(?:{self.found(place).pattern})", re.IGNORECASE)

    def opens(self, place: str) -> re.Pattern[str]:
        """Like `begins`, but the text's word may be longer than the one found."""
        return re.compile(rf"^\W*(?:{self.any_of(place)})", re.IGNORECASE)

    def named(self, table: str) -> dict[str, str]:
        """The names in a table by the words that stand under them, of both languages."""
        both = (*self.english.under(table).items(), *self.chinese.under(table).items())
        return {phrase: name for name, phrases in both for phrase in phrases}

    def numbers(self, table: str) -> dict[str, int]:
        """Like `named`, for names that are whole numbers."""
        return {phrase: int(name) for phrase, name in self.named(table).items()}
