"""What a table or column may be called by people, derived from its identifier and its comment.

Each name comes with a quality from 0 to 1: the whole identifier or comment is 1, a part of it or a
synonym is less, so that the planner can prefer the better match and ask when two are equally good.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from common.text import Lang, Text
from common.values import Column, Table
from common.word_files import Words
from knowledge.language.atoms import key_of, normalise, words_of
from knowledge.language.codes import before_labels
from knowledge.language.cutting import has_han
from knowledge.language.inflection import stem
from knowledge.language.thesaurus import ABBREVIATIONS, EN_TO_EN, EN_TO_ZH, ZH_TO_EN, ZH_TO_ZH
from knowledge.words import WORDS

_NAME_END = re.compile(r"[:;,。;、\n]| - |--")
_BRACKETS = re.compile(r"[(\[【〔]([^()\[\]【】〔〕]*)[)\]】〕]")
_ENUMERATED = re.compile(r"\([^(),;、/]*+[,;、/][^()]*+\)")
_MAX_COMMENT_WORDS = 5
_READ_OF_COMMENT, _LONGEST_COMMENT_NAME = 400, 200  # characters; a longer name is none


def _weights(words: Words, place: str) -> dict[str, float]:
    """How good a name is without each of the words that it begins or ends with."""
    weights = {}
    for weight, said in words.under(place).items():
        weights.update(dict.fromkeys(said, float(weight)))
    return weights


_EN, _ZH = WORDS.english, WORDS.chinese
_ENGLISH_TAILS, _HAN_TAILS = _weights(_EN, "names.ends"), _weights(_ZH, "names.ends")
_ENGLISH_HEADS, _HAN_PREFIXES = _weights(_EN, "names.beginnings"), _ZH.phrases("names.beginnings")
_GENERIC_WORDS, _GENERIC_HAN = _EN.one_of("names.generic"), _ZH.one_of("names.generic")
_TABLE_PREFIXES = _EN.one_of("names.table_beginnings")
_TABLE_SUFFIXES, _HAN_TABLE_TAILS = _EN.one_of("names.table_ends"), _ZH.phrases("names.table_ends")
_SAID_TABLES, _SAID_TABLE_HAN = (
    _EN.phrases("names.table_ends_said"),
    _ZH.text("names.table_ends_said"),
)
_UNSAID_TABLE_TAILS = _ZH.phrases("names.table_ends_unsaid")
_LINES, _OF, _BY = _ZH.text("names.lines"), _ZH.text("names.of"), _EN.text("names.by")
_UNITS, _UNIT = _ZH.one_of("names.units"), _ZH.text("names.unit")
_DATE_ENDS, _DATE_NOUNS = _EN.phrases("names.date_ends"), _EN.phrases("names.date_nouns")
_GLUED_TAILS, _SHORT_GLUED_TAILS = (
    _EN.phrases("names.glued_ends"),
    _EN.phrases("names.short_glued_ends"),
)
_ABBREVIATION_TAILS, _WHOLE_WORDS = (
    _EN.phrases("names.abbreviation_ends"),
    _EN.one_of("names.whole_words"),
)
_OWNERS_OWN = 0.5
_MASS = _ZH.pattern("names.masses", end="$")  # of which there is much, not many

Name = tuple[str, float]


_POWERS = re.compile(r"_([a-z]?m)[23](?=_|$)")  # volume_m3


@lru_cache(maxsize=16384)
def english_words(identifier: str) -> tuple[str, ...]:
    """The words of an identifier: words written together taken apart (`hiredate`), abbreviations
    spelled out.
    """
    words = itertools.chain.from_iterable(
        _apart(word) for word in words_of(_POWERS.sub(r"_\1", identifier))
    )
    return tuple(
        itertools.chain.from_iterable(ABBREVIATIONS.get(word, word).split() for word in words)
    )


def _apart(word: str) -> tuple[str, ...]:
    if word in ABBREVIATIONS or word in _WHOLE_WORDS:
        return (word,)
    for tail in _GLUED_TAILS:
        head = word.removesuffix(tail)
        if head != word and _is_head(head, tail):
            return (head, tail)
    for tail in _ABBREVIATION_TAILS:
        head = word.removesuffix(tail)
        if head != word and head in ABBREVIATIONS:
            return (head, tail)
    return (word,)


def _is_head(head: str, tail: str) -> bool:
    """Tell whether a word may be `head` and `tail` written together."""
    if len(head) >= 4 or head in ABBREVIATIONS:
        return True
    return len(head) == 3 and tail in _SHORT_GLUED_TAILS


def comment_names(comment: str | None) -> list[str]:
    """The names a comment gives its object: the part before the explanation, then what stands in
    brackets.
    """
    if comment:
        return list(_comment_names(comment[:_READ_OF_COMMENT]))
    return []


@lru_cache(maxsize=16384)
def _comment_names(comment: str) -> tuple[str, ...]:
    text = _ENUMERATED.sub("", before_labels(normalise(comment)))
    head = _NAME_END.split(text, maxsplit=1)[0]
    name = _BRACKETS.sub("", head).strip(" .")
    aliases = [alias.strip() for alias in _BRACKETS.findall(head)]
    names = [
        name,
        *(alias for alias in aliases if alias not in _UNITS and not alias.startswith(_UNIT)),
    ]
    return tuple(
        name
        for name in names
        if name and len(name) <= _LONGEST_COMMENT_NAME
        if has_han(name) or len(name.split()) <= _MAX_COMMENT_WORDS
    )


def meant_names(thing: Table | Column) -> tuple[str, ...]:
    """Return the names that the semantic file gives, in all languages."""
    if thing.meaning is not None:
        return thing.meaning.names.all
    return ()


def spoken_name(thing: Table | Column, lang: Lang) -> str:
    """Return a name for sentences: the display name, else the comment's, else the identifier."""
    meant = None
    if thing.meaning is not None:
        meant = thing.meaning.names.label(lang)
    if meant is not None:
        return meant
    if lang == "zh":
        return _chinese_name(thing)
    return _english_name(thing)


def _chinese_name(thing: Table | Column) -> str:
    commented = comment_names(thing.comment)
    name = commented[0] if commented else " ".join(english_words(thing.name)) or thing.name
    if isinstance(thing, Table):
        return _without_end(name)
    return name


def _english_name(thing: Table | Column) -> str:
    if has_han(thing.name):
        for name in comment_names(thing.comment):
            if not has_han(name):
                return name
    return " ".join(english_words(thing.name))


def _without_end(name: str) -> str:
    """A table's Chinese name without what only says that it is a table."""
    end = next((end for end in _UNSAID_TABLE_TAILS if name.endswith(end)), "")
    if len(name) > len(end) + 1:
        return name.removesuffix(end)
    return name


def called(thing: Table | Column) -> Text:
    """Return its name for sentences in both languages."""
    return Text(spoken_name(thing, "zh"), spoken_name(thing, "en"))


def table_names(table: Table) -> dict[str, float]:
    """Everything people may call the table, keyed by comparison key, with the best quality of each."""
    names: list[Name] = []
    for text, quality in _spelled(table):
        if has_han(text):
            names.extend(_han_table_names(normalise(text), quality))
        else:
            names.extend(_english_table_names(english_words(text), quality))
    return _best(names)


def column_names(table: Table, column: Column, *, with_owner: bool = True) -> dict[str, float]:
    """Everything people may call the column, keyed by comparison key, with the best quality of
    each.

    Without `with_owner`, only what does not name its table as well.
    """
    owner = _owner(table.name, table.comment, meant_names(table))
    names = _bare_names(column, owner.words, owner.han if with_owner else ())
    return _best([*names, *_owned_names(column, owner)] if with_owner else names)


def bare_names(table: Table, column: Column) -> dict[str, float]:
    """Return the `column_names` that do not begin with the table's name."""
    owner = _owner(table.name, table.comment, meant_names(table))
    return _best(_bare_names(column, owner.words, owner.han))


def _bare_names(
    column: Column, owner: tuple[str, ...], han_owners: tuple[str, ...]
) -> Iterator[Name]:
    for text, quality in _spelled(column):
        if has_han(text):
            yield from _han_column_names(normalise(text), quality, han_owners)
        else:
            yield from _english_column_names(english_words(text), quality, owner)
            yield " ".join(words_of(text)), quality


def owned_names(table: Table, column: Column) -> dict[str, float]:
    """Return the `column_names` that begin with the table's name: `order amount`."""
    return _best(_owned_names(column, _owner(table.name, table.comment, meant_names(table))))


def owner_names(table: Table) -> tuple[str, ...]:
    """The names of the table with which its columns' `owned_names` begin."""
    owner = _owner(table.name, table.comment, meant_names(table))
    english = {" ".join(owner.words), owner.words[-1]} if owner.words else set()
    return (*english, *owner.han)


def owner_traits(table: Table) -> Iterator[tuple[str, ...]]:
    """For each column, what its `bare_names` depend on in the table's name; equal traits give equal
    names.
    """
    owner = _owner(table.name, table.comment, meant_names(table))
    none: tuple[str, ...] = () if owner.words else ("",)
    ends = {owner.words[0], owner.words[-1]} if owner.words else frozenset[str]()
    for column in table.columns:
        traits = none
        for han, stems in _folded_names(column.name, column.comment, meant_names(column)):
            if han:
                traits += tuple(core for core in owner.han if core[0] in han or core[-1] in han)
            elif not stems.isdisjoint(ends):
                traits += owner.words
        yield traits


@lru_cache(maxsize=16384)
def _folded_names(
    name: str, comment: str | None, meant: tuple[str, ...]
) -> tuple[tuple[str, frozenset[str]], ...]:
    """Of each name, its characters if it is Chinese, else an empty text and the stems of its words."""
    return tuple(
        (normalise(text), frozenset())
        if has_han(text)
        else ("", frozenset(_stems(english_words(text))))
        for text in (name, *meant, *comment_names(comment))
    )


def _spelled(thing: Table | Column) -> list[Name]:
    """List its names as written; of `数量_公斤` what stands before the unit as well."""
    whole = [(name, 1.0) for name in (thing.name, *meant_names(thing))]
    head, _, unit = thing.name.rpartition("_")
    if has_han(head) and unit in _UNITS:
        whole.append((head, 0.98))
    return [*whole, *((name, 0.98) for name in comment_names(thing.comment))]


@dataclass(frozen=True)
class _Owner:
    """English words without inflection, and Chinese names, with which names of columns may begin."""

    words: tuple[str, ...]
    han: tuple[str, ...]


@lru_cache(maxsize=4096)
def _owner(name: str, comment: str | None, meant: tuple[str, ...]) -> _Owner:
    texts = [text for text in (name, *meant, *comment_names(comment)) if has_han(text)]
    cores = (_han_core(normalise(text)) for text in texts)
    english = next((text for text in (name, *meant) if not has_han(text)), name)
    return _Owner(_stems(english_words(english)), tuple(core for core in cores if len(core) > 1))


def _best(names: Iterable[Name]) -> dict[str, float]:
    best: dict[str, float] = {}
    for name, quality in names:
        key = key_of(name)
        if key and best.get(key, 0.0) < quality:
            best[key] = quality
    return best


def core_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a table's identifier without what only says that it is a table (`t_order_info`)."""
    first = 0
    last = len(words)
    while last - first > 1 and words[first] in _TABLE_PREFIXES:
        first += 1
    while last - first > 1 and words[last - 1] in _TABLE_SUFFIXES:
        last -= 1
    return words[first:last]


def _english_table_names(words: tuple[str, ...], quality: float) -> Iterator[Name]:
    if not words:
        return
    yield " ".join(words), quality
    # Said like this, `daily` in the name of `daily_revenue` asks for no days.
    yield from ((" ".join((*words, said)), quality) for said in _SAID_TABLES)
    core = core_words(words)
    yield " ".join(core), quality * 0.97
    if len(core) > 1 and core[-1] not in _GENERIC_WORDS:
        yield core[-1], quality * 0.65


def _english_column_names(
    words: tuple[str, ...], quality: float, owner: tuple[str, ...]
) -> Iterator[Name]:
    if not words or not owner:
        return
    yield " ".join(words), quality
    yield "".join(words), quality
    if _names_owner(words, owner):
        yield " ".join(words[len(owner) :]), quality * 0.8
    if len(words) == 1:
        return
    if words[-1] in _DATE_ENDS:  # `endsOn` is the end date
        yield from ((" ".join((*words[:-1], noun)), quality * 0.9) for noun in _DATE_NOUNS)
    if words[0] in _ENGLISH_HEADS:
        yield " ".join(words[1:]), quality * _ENGLISH_HEADS[words[0]]
    rest = words
    weight = quality
    while len(rest) > 1 and rest[-1] in _ENGLISH_TAILS:
        weight *= _ENGLISH_TAILS[rest[-1]]
        rest = rest[:-1]
        if rest[-1] not in _GENERIC_WORDS or len(rest) > 1:
            is_thing = len(rest) < len(owner) and _stems(rest) == owner[-len(rest) :]
            yield (
                " ".join(rest),
                quality * _OWNERS_OWN if is_thing else weight,
            )  # contract_amount of crm_contract
    for start in range(1, len(rest)) if rest != words else ():  # the weight of gross_weight_kg
        yield " ".join(rest[start:]), weight * 0.72
    for start in range(1, len(words)):
        tail = words[start:]
        yield " ".join(tail), quality * (0.45 if tail[0] in _GENERIC_WORDS else 0.72)
    if words[0] not in _GENERIC_WORDS:
        yield words[0], quality * 0.5


def _stems(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(stem, words))


def _names_owner(words: tuple[str, ...], owner: tuple[str, ...]) -> bool:
    """Whether a column's words begin with its table's, and go on."""
    return len(words) > len(owner) and _stems(words[: len(owner)]) == owner


def _owned_names(column: Column, owner: _Owner) -> Iterator[Name]:
    for text, quality in _spelled(column):
        words = english_words(text)
        if has_han(text):
            yield from _owned_han_names(normalise(text), quality, owner.han)
        elif words and owner.words and not _names_owner(words, owner.words) and words[-1] != _BY:
            # "devices installed by Ada" begins with the thing asked for
            yield " ".join((*owner.words, *words)), quality * 0.97
            yield " ".join((owner.words[-1], *words)), quality * 0.9


def _owned_han_names(text: str, quality: float, owners: tuple[str, ...]) -> Iterator[Name]:
    bare, quality = list(_without_prefixes(text, quality))[-1]
    for owner in owners:
        if not (bare.startswith(owner) and len(bare) > len(owner)):
            yield owner + bare, quality * 0.97


def _han_core(text: str) -> str:
    for tail in _HAN_TABLE_TAILS:
        if text.endswith(tail) and len(text) > len(tail) + 1:
            return text[: -len(tail)]
    return text


def _han_table_names(text: str, quality: float) -> Iterator[Name]:
    yield text, quality
    yield f"{text}{_SAID_TABLE_HAN}", quality
    core = _han_core(text)
    # The lines of an order are not orders.
    quality *= 0.6 if _LINES in text[len(core) :] else 1.0
    yield core, quality * 0.97
    yield f"{core}{_SAID_TABLE_HAN}", quality * 0.97
    for start in range(1, len(core) - 1):
        if core[start:] not in _GENERIC_HAN:
            yield core[start:], quality * (0.72 if len(core) - start >= 2 else 0.4)
    for end in range(2, len(core)):
        if core[:end] not in _GENERIC_HAN:
            yield core[:end], quality * 0.45


def _without_prefixes(text: str, quality: float) -> Iterator[Name]:
    """The text as it is, then again after each prefix that is taken off."""
    yield text, quality
    for prefix in _HAN_PREFIXES:
        if text.startswith(prefix) and len(text) > len(prefix) + 1:
            text = text[len(prefix) :]
            quality *= 0.96
            yield text, quality


def _han_column_names(text: str, quality: float, owners: tuple[str, ...]) -> Iterator[Name]:
    for text, quality in _without_prefixes(text, quality):  # noqa: B020, PLR1704 - the last one goes on
        yield text, quality
    for owner in owners:
        if text.startswith(owner) and len(text) > len(owner):
            yield text[len(owner) :].lstrip(_OF), quality * 0.8
    for tail, weight in _HAN_TAILS.items():
        if text.endswith(tail) and len(text) - len(tail) >= 2:
            rest = text[: -len(tail)]
            is_thing = (
                weight > 0.9
                and not _MASS.search(rest)
                and any(owner.endswith(rest) for owner in owners)
            )
            yield (
                rest,
                quality * (_OWNERS_OWN if is_thing else weight),
            )  # `处方` of 处方金额 in 门诊处方
            yield from _han_parts(rest, quality * weight)
    yield from _han_parts(text, quality)


def _han_parts(text: str, quality: float) -> Iterator[Name]:
    """Parts of at least two characters; an end is worth most, because it carries the meaning in
    Chinese.
    """
    size = len(text)
    for start, end in itertools.combinations(range(size + 1), 2):
        part = text[start:end]
        if 2 <= end - start < size and part not in _GENERIC_HAN:
            weight = 0.75 if end == size else 0.6 if start == 0 else 0.45
            yield part, quality * weight


def borrowed_names(names: Mapping[str, float]) -> dict[str, float]:
    """Names that general language uses for the same (`营收` for `营业收入`), with their quality."""
    return _best(
        (other, quality * 0.85)
        for name, quality in names.items()
        if quality >= 0.6
        for other in (_han_synonyms(name) if has_han(name) else _english(name))
    )


def _han_synonyms(name: str) -> Iterator[str]:
    yield from ZH_TO_ZH.get(name, ())
    yield from ZH_TO_EN.get(name, ())
    for cut in range(1, len(name)):
        for other in ZH_TO_ZH.get(name[cut:], ()):
            yield name[:cut] + other
        for other in ZH_TO_ZH.get(name[:cut], ()) if cut > 1 else ():
            yield other + name[cut:]
        for first, second in itertools.product(
            ZH_TO_EN.get(name[:cut], ()), ZH_TO_EN.get(name[cut:], ())
        ):
            yield f"{first} {second}"


def _english(name: str) -> Iterator[str]:
    words = name.split(" ")
    whole = key_of(name, stems=True)
    yield from EN_TO_EN.get(whole, ())
    yield from EN_TO_ZH.get(whole, ())
    if not 2 <= len(words) <= 3:
        return
    for index, word in enumerate(words):
        for other in EN_TO_EN.get(key_of(word, stems=True), ()):
            if word not in other.split(
                " "
            ):  # an "average list price" is more than an average price
                yield " ".join((*words[:index], other, *words[index + 1 :]))
    for cut in range(1, len(words)):
        left = EN_TO_ZH.get(key_of(" ".join(words[:cut]), stems=True), ())
        right = EN_TO_ZH.get(key_of(" ".join(words[cut:]), stems=True), ())
        yield from (first + second for first, second in itertools.product(left, right))
