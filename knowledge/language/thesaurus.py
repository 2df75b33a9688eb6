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


_Table = dict[str, list[str]]


def _each_once(table: _Table) -> dict[str, tuple[str, ...]]:
    """Return the entries of a table, each word once."""
    entries = {}
    for key, words in table.items():
        entries[key] = tuple(dict.fromkeys(words))

    return entries


def _groups() -> tuple[dict[str, tuple[str, ...]], ...]:
    """Read the words of one meaning, by each of them.

    Returns:
        English stem phrases → English alternatives, English → Chinese, Chinese → Chinese, Chinese →
        English.
    """
    en_to_en: _Table = {}
    en_to_zh: _Table = {}
    zh_to_zh: _Table = {}
    zh_to_en: _Table = {}
    for line in THESAURUS.phrases("concepts"):
        left, right = line.split("|")
        english = [" ".join(words_of(word)) for word in left.split()]
        chinese = right.split()
        for word in english:
            stemmed = key_of(word, stems=True)
            en_to_en.setdefault(stemmed, []).extend(_without(word, english))
            en_to_zh.setdefault(stemmed, []).extend(chinese)

        for word in chinese:
            zh_to_zh.setdefault(word, []).extend(_without(word, chinese))
            zh_to_en.setdefault(word, []).extend(english)

    return tuple(map(_each_once, (en_to_en, en_to_zh, zh_to_zh, zh_to_en)))


def _without(word: str, words: list[str]) -> list[str]:
    return [other for other in words if other != word]


EN_TO_EN, EN_TO_ZH, ZH_TO_ZH, ZH_TO_EN = _groups()


def _events() -> dict[str, tuple[str, ...]]:
    events: dict[str, tuple[str, ...]] = {}
    for line in THESAURUS.phrases("events"):
        verbs, tables = line.split("|")
        for verb in verbs.split():
            events[key_of(verb, stems=True)] = tuple(tables.split())

    return events


EVENTS_OF_VERBS = _events()
"""Names of tables that hold the events of a verb."""


def _translations() -> tuple[dict[str, tuple[str, ...]], ...]:
    """Read the dictionary: English stem phrases → Chinese, Chinese → English."""
    en_to_zh: _Table = {}
    zh_to_en: _Table = {}
    lines: list[str] = []
    for place in DICTIONARY.places:
        lines.extend(DICTIONARY.phrases(place))

    for line in lines:
        left, right = line.split("=")
        for word in left.split():
            phrase = " ".join(words_of(word))
            stemmed = key_of(phrase, stems=True)
            en_to_zh.setdefault(stemmed, []).extend(right.split())
            for other in right.split():
                zh_to_en.setdefault(other, []).append(phrase)

    return _each_once(en_to_zh), _each_once(zh_to_en)


TRANSLATED_EN, TRANSLATED_ZH = _translations()
