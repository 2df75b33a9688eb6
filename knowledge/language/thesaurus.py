"""Words that mean the same, in English and Chinese.

`words/thesaurus.toml` holds those of general business language, by which questions are also
answered; `words/dictionary.toml` many more, which only lead to tables.
"""

from knowledge.language.atoms import key_of, words_of
from knowledge.words import DICTIONARY, THESAURUS

ABBREVIATIONS = {
    short: meant for meant, said in THESAURUS.under("abbreviations").items() for short in said
}
"""Shortened words seen in identifiers, spelled out."""


def _groups() -> tuple[dict[str, tuple[str, ...]], ...]:
    """(English stem phrase → English alternatives, English → Chinese, Chinese → Chinese, Chinese →
    English).
    """
    tables: tuple[dict[str, list[str]], ...] = ({}, {}, {}, {})
    for line in THESAURUS.phrases("concepts"):
        left, right = line.split("|")
        english = [" ".join(words_of(word)) for word in left.split()]
        chinese = right.split()
        for word in english:
            stemmed = key_of(word, stems=True)
            tables[0].setdefault(stemmed, []).extend(other for other in english if other != word)
            tables[1].setdefault(stemmed, []).extend(chinese)
        for word in chinese:
            tables[2].setdefault(word, []).extend(other for other in chinese if other != word)
            tables[3].setdefault(word, []).extend(english)
    return tuple(
        {key: tuple(dict.fromkeys(words)) for key, words in table.items()} for table in tables
    )


EN_TO_EN, EN_TO_ZH, ZH_TO_ZH, ZH_TO_EN = _groups()


def _events() -> dict[str, tuple[str, ...]]:
    events: dict[str, tuple[str, ...]] = {}
    for line in THESAURUS.phrases("events"):
        verbs, tables = line.split("|")
        for verb in verbs.split():
            events[key_of(verb, stems=True)] = tuple(tables.split())
    return events


EVENTS_OF_VERBS = _events()
"""What a table of the events may be called that a verb speaks of."""


def _translations() -> tuple[dict[str, tuple[str, ...]], ...]:
    """(English stem phrase → Chinese, Chinese → English)."""
    english: dict[str, list[str]] = {}
    chinese: dict[str, list[str]] = {}
    for line in (line for place in DICTIONARY.places for line in DICTIONARY.phrases(place)):
        left, right = line.split("=")
        for word in left.split():
            phrase = " ".join(words_of(word))
            english.setdefault(key_of(phrase, stems=True), []).extend(right.split())
            for other in right.split():
                chinese.setdefault(other, []).append(phrase)
    return tuple(
        {key: tuple(dict.fromkeys(words)) for key, words in table.items()}
        for table in (english, chinese)
    )


TRANSLATED_EN, TRANSLATED_ZH = _translations()
