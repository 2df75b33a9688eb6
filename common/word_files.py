"""Reads files of words (TOML), each once, and checks them meanwhile."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_NO_WORDS = "holds neither a text nor a list of texts"


def words(text: str) -> frozenset[str]:
    """Return the blank-separated words of `text` as a set."""
    return frozenset(text.split())


class WordsError(ValueError):
    """A file of words is invalid; the message names the file, the place in it and the mistake."""


class Words:
    """The words of one file, by the dotted names of its tables (`talk.greetings`).

    A text holds phrases, separated by `|` or by the ends of lines. A list holds one pattern or
    sentence per element.

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

        self._lists = dict(self._read_section("", tables))

    def _read_section(self, place: str, value: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
        if not isinstance(value, Mapping):
            yield place, self._checked_phrases(place, value)
            return

        for name, inner in value.items():
            inner_place = name
            if place:
                inner_place = f"{place}.{name}"

            yield from self._read_section(inner_place, inner)

    def _checked_phrases(self, place: str, value: Any) -> tuple[str, ...]:
        phrases = value
        if isinstance(value, str):
            phrases = _phrases(value)

        is_list = isinstance(phrases, list) and bool(phrases)
        if not is_list:
            raise self.error(place, _NO_WORDS)

        seen: dict[str, None] = {}
        for phrase in phrases:
            if not isinstance(phrase, str):
                raise self.error(place, _NO_WORDS)
            if phrase in seen:
                raise self.error(place, f"says {phrase!r} twice")

            seen[phrase] = None

        return tuple(seen)

    @property
    def places(self) -> tuple[str, ...]:
        """Return the dotted names of the tables that hold words."""
        return tuple(self._lists)

    def error(self, place: str, trouble: str) -> WordsError:
        """Return the error that names `place` in this file and its trouble."""
        return WordsError(f"{self._name}: {place} {trouble}")

    def phrases(self, place: str) -> tuple[str, ...]:
        """Return the words at `place`, in the order of the file.

        Raises:
            WordsError: there are none.
        """
        if place not in self._lists:
            raise self.error(place, "is missing")

        return self._lists[place]

    def text(self, place: str) -> str:
        """Return the words at `place` put together, such as characters written one by one."""
        return "".join(self.phrases(place))

    def one_of(self, place: str) -> frozenset[str]:
        """Return the words at `place` as a set."""
        return frozenset(self.phrases(place))

    def pattern(
        self, place: str, begin: str = "", end: str = "", flags: re.RegexFlag = re.NOFLAG
    ) -> re.Pattern[str]:
        """Return a pattern of any of the words at `place`, between two patterns."""
        return re.compile(f"{begin}(?:{'|'.join(self.phrases(place))}){end}", flags)

    def get(self, place: str) -> tuple[str, ...]:
        """Return the words at `place`; none where this file's language needs none."""
        return self._lists.get(place, ())

    def under(self, table: str) -> dict[str, tuple[str, ...]]:
        """Return the words of a table by their names in it, in the order of the file."""
        begin = f"{table}."
        entries = {}
        for place, phrases in self._lists.items():
            if place.startswith(begin):
                entries[place.removeprefix(begin)] = phrases

        return entries


def _phrases(text: str) -> list[str]:
    phrases = []
    for line in text.splitlines():
        for part in line.split("|"):
            phrase = part.strip()
            if phrase:
                phrases.append(phrase)

    return phrases


class Languages:
    """The words of both languages, `english.toml` and `chinese.toml` of one folder.

    English words are found as whole words, Chinese ones anywhere, since no blanks part them.
    """

    def __init__(self, folder: Path) -> None:
        self.english = Words(folder / "english.toml")
        self.chinese = Words(folder / "chinese.toml")

    def both(self, place: str) -> tuple[str, ...]:
        """Return the English words at `place`, then the Chinese ones; one language may have none.

        Raises:
            WordsError: neither has any.
        """
        phrases = self.english.get(place) + self.chinese.get(place)
        if not phrases:
            raise self.chinese.error(place, "is missing")

        return phrases

    def any_of(self, place: str) -> str:
        """Return a pattern of the words at `place`, as they stand there."""
        return "|".join(self.both(place))

    def found(self, place: str) -> re.Pattern[str]:
        """Return a pattern that finds any of the words at `place`."""
        patterns = list(self.chinese.get(place))
        english = "|".join(self.english.get(place))
        if english:
            patterns.insert(0, rf"\b(?:{english})\b")

        return re.compile("|".join(patterns), re.IGNORECASE)

    def begins(self, place: str) -> re.Pattern[str]:
        """Return a pattern of the words at `place` where a text begins, signs before it aside."""
        return re.compile(rf"^\W*(?:{self.found(place).pattern})", re.IGNORECASE)

    def opens(self, place: str) -> re.Pattern[str]:
        """Return a pattern like `begins`, but the text's word may be longer than the one found."""
        return re.compile(rf"^\W*(?:{self.any_of(place)})", re.IGNORECASE)

    def named(self, table: str) -> dict[str, str]:
        """Return the names in a table by the words that stand under them, of both languages."""
        names = {}
        for language in (self.english, self.chinese):
            for name, phrases in language.under(table).items():
                names.update(dict.fromkeys(phrases, name))

        return names

    def numbers(self, table: str) -> dict[str, int]:
        """Return numbers by their words, as `named` does."""
        return {phrase: int(name) for phrase, name in self.named(table).items()}
