"""Derive people's names for a table or column from its identifier and its comment.

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
_LANGUAGES = re.compile(r"[/|]")  # between the names of a comment in two languages
_ENUMERATED = re.compile(r"\([^(),;、/]*+[,;、/][^()]*+\)")
_LEAST_HEAD = 3  # letters of a word before another one that is written together with it
_MAX_COMMENT_WORDS = 5
_READ_OF_COMMENT, _LONGEST_COMMENT_NAME = 400, 200  # characters; a longer name is none


def _weights(words: Words, place: str) -> dict[str, float]:
    """Read how good a name is without each of the words that it begins or ends with."""
    weights = {}
    for weight, phrases in words.under(place).items():
        weights.update(dict.fromkeys(phrases, float(weight)))

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
BORROWED = 0.85
"""What another word, or a translation, counts beside the name itself."""
_OWNERS_OWN = 0.5
_MASS = _ZH.pattern("names.masses", end="$")  # of which there is much, not many

Name = tuple[str, float]


_POWERS = re.compile(r"_([a-z]?m)[23](?=_|$)")  # volume_m3


@lru_cache(maxsize=16384)
def english_words(identifier: str) -> tuple[str, ...]:
    """Return an identifier's words, with abbreviations spelled out.

    Words that are written together are taken apart (`hiredate`).
    """
    words: list[str] = []
    for written in words_of(_POWERS.sub(r"_\1", identifier)):
        for word in _apart(written):
            words.extend(ABBREVIATIONS.get(word, word).split())

    return tuple(words)


def _apart(word: str) -> tuple[str, ...]:
    """Split a word of a name before an ending that is written on to it without a separator."""
    if word in ABBREVIATIONS or word in _WHOLE_WORDS:
        return (word,)

    for tail in filter(word.endswith, _GLUED_TAILS):
        head = word.removesuffix(tail)
        if _is_head(head, tail):
            return (head, tail)

    for tail in filter(word.endswith, _ABBREVIATION_TAILS):
        head = word.removesuffix(tail)
        if head in ABBREVIATIONS:
            return (head, tail)

    return (word,)


def _is_head(head: str, tail: str) -> bool:
    """Tell whether a word may be `head` and `tail` written together."""
    if head in ABBREVIATIONS:
        return True
    if len(head) == _LEAST_HEAD:
        return tail in _SHORT_GLUED_TAILS

    return len(head) > _LEAST_HEAD


def comment_names(comment: str | None) -> list[str]:
    """Return the names a comment gives its object.

    The part before the explanation comes first, then what stands in brackets.
    """
    if not comment:
        return []

    beginning = comment[:_READ_OF_COMMENT]
    return list(_comment_names(beginning))


@lru_cache(maxsize=16384)
def _comment_names(comment: str) -> tuple[str, ...]:
    text = _ENUMERATED.sub("", before_labels(normalise(comment)))
    head = _NAME_END.split(text, maxsplit=1)[0]
    names = _in_each_language(_BRACKETS.sub("", head).strip(" ."))
    for inside in _BRACKETS.findall(head):
        alias = inside.strip()
        is_unit = alias in _UNITS or alias.startswith(_UNIT)
        if not is_unit:
            names.append(alias)

    return tuple(filter(_is_short_name, names))


def _in_each_language(text: str) -> list[str]:
    """Return the Chinese and the English name of `Customer / 客户`, else the text as it is."""
    parts = [part.strip() for part in _LANGUAGES.split(text)]
    if len(parts) != 2 or has_han(parts[0]) == has_han(parts[1]):
        return [text]

    return sorted(parts, key=has_han, reverse=True)


def _is_short_name(text: str) -> bool:
    if not 0 < len(text) <= _LONGEST_COMMENT_NAME:
        return False

    return has_han(text) or len(text.split()) <= _MAX_COMMENT_WORDS


def meant_names(thing: Table | Column) -> tuple[str, ...]:
    """Return the names that the semantic file gives, in all languages."""
    if thing.meaning is not None:
        return thing.meaning.names.all

    return ()


def spoken_name(thing: Table | Column, lang: Lang) -> str:
    """Return a name for sentences: the display name, else the comment's, else the identifier."""
    display_name = None
    if thing.meaning is not None:
        display_name = thing.meaning.names.label(lang)
    if display_name is not None:
        return display_name
    if lang == "zh":
        return _chinese_name(thing)

    return _english_name(thing)


def _chinese_name(thing: Table | Column) -> str:
    commented = comment_names(thing.comment)
    name = _identifier_in_words(thing) or thing.name
    if commented:
        name = commented[0]
    if isinstance(thing, Table):
        return _without_end(name)

    return name


def _english_name(thing: Table | Column) -> str:
    if has_han(thing.name):
        for name in comment_names(thing.comment):
            if not has_han(name):
                return name

    return _identifier_in_words(thing)


def _identifier_in_words(thing: Table | Column) -> str:
    """Return the words of an identifier; of a table's without what only marks it (t_orders)."""
    words = english_words(thing.name)
    is_marked = isinstance(thing, Table) and len(words) > 1 and words[0] in _TABLE_PREFIXES
    return " ".join(words[1:] if is_marked else words)


def _without_end(name: str) -> str:
    """Return a table's Chinese name without what only says that it is a table."""
    end = next(filter(name.endswith, _UNSAID_TABLE_TAILS), "")
    rest = name.removesuffix(end)
    if len(rest) > 1:
        return rest

    return name


def called(thing: Table | Column) -> Text:
    """Return the name of a table or column for sentences, in both languages."""
    return Text(spoken_name(thing, "zh"), spoken_name(thing, "en"))


def table_names(table: Table) -> dict[str, float]:
    """Return all that people may call the table, by comparison key, each with its best quality."""
    names: list[Name] = []
    for text, quality in _spelled(table):
        if has_han(text):
            names.extend(_han_table_names(normalise(text), quality))
        else:
            names.extend(_english_table_names(english_words(text), quality))

    return _best(names)


def column_names(table: Table, column: Column, *, with_owner: bool = True) -> dict[str, float]:
    """Return all that people may call the column, by comparison key, each with its best quality.

    Without `with_owner`, only what does not name its table as well.
    """
    owner = _owner(table.name, table.comment, meant_names(table))
    if not with_owner:
        return _best(_bare_names(column, owner.words, ()))

    bare = _bare_names(column, owner.words, owner.han)
    owned = _owned_names(column, owner)
    return _best([*bare, *owned])


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
    owner = _owner(table.name, table.comment, meant_names(table))
    return _best(_owned_names(column, owner))


def owner_names(table: Table) -> tuple[str, ...]:
    """Return the names of the table with which its columns' `owned_names` begin."""
    owner = _owner(table.name, table.comment, meant_names(table))
    if not owner.words:
        return owner.han

    english = {" ".join(owner.words), owner.words[-1]}
    return (*english, *owner.han)


def owner_traits(table: Table) -> Iterator[tuple[str, ...]]:
    """Yield, for each column, the parts of the table's name that its `bare_names` depend on.

    Columns of one name with equal traits have equal names.
    """
    owner = _owner(table.name, table.comment, meant_names(table))
    none: tuple[str, ...] = ()
    if not owner.words:
        none = ("",)

    ends = {*owner.words[:1], *owner.words[-1:]}
    for column in table.columns:
        traits = none
        for han, stems in _folded_names(column.name, column.comment, meant_names(column)):
            if han:
                traits += owner.han_beside(han)
            elif not stems.isdisjoint(ends):
                traits += owner.words

        yield traits


@lru_cache(maxsize=16384)
def _folded_names(
    name: str, comment: str | None, display_names: tuple[str, ...]
) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return, of each name, its text if it is Chinese, else its words' stems."""
    folded: list[tuple[str, frozenset[str]]] = []
    for text in (name, *display_names, *comment_names(comment)):
        if has_han(text):
            folded.append((normalise(text), frozenset()))
        else:
            stems = _stems(english_words(text))
            folded.append(("", frozenset(stems)))

    return tuple(folded)


def _spelled(thing: Table | Column) -> list[Name]:
    """List its names as written; of `数量_公斤` what stands before the unit as well."""
    spelled = [(name, 1.0) for name in (thing.name, *meant_names(thing))]
    head, _, unit = thing.name.rpartition("_")
    if has_han(head) and unit in _UNITS:
        spelled.append((head, 0.98))

    for name in comment_names(thing.comment):
        spelled.append((name, 0.98))

    return spelled


@dataclass(frozen=True)
class _Owner:
    """English words without inflection, and Chinese names, that names of columns begin with."""

    words: tuple[str, ...]
    han: tuple[str, ...]

    def han_beside(self, text: str) -> tuple[str, ...]:
        """Return the Chinese names whose first or last character the text has."""
        beside = []
        for core in self.han:
            has_end = core[0] in text or core[-1] in text
            if has_end:
                beside.append(core)

        return tuple(beside)


@lru_cache(maxsize=4096)
def _owner(name: str, comment: str | None, display_names: tuple[str, ...]) -> _Owner:
    names = (name, *display_names)
    english = next((text for text in names if not has_han(text)), name)
    cores = []
    for text in (*names, *comment_names(comment)):
        if not has_han(text):
            continue

        core = _han_core(normalise(text))
        if len(core) > 1:
            cores.append(core)

    return _Owner(_stems(english_words(english)), tuple(cores))


def _best(names: Iterable[Name]) -> dict[str, float]:
    best: dict[str, float] = {}
    for name, quality in names:
        key = key_of(name)
        if key and best.get(key, 0.0) < quality:
            best[key] = quality

    return best


def core_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a table's words without those that only say that it is a table (`t_order_info`)."""
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
    for noun in _SAID_TABLES:
        yield " ".join((*words, noun)), quality

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
        for noun in _DATE_NOUNS:
            yield " ".join((*words[:-1], noun)), quality * 0.9

    if words[0] in _ENGLISH_HEADS:
        yield " ".join(words[1:]), quality * _ENGLISH_HEADS[words[0]]

    yield from _names_without_tails(words, quality, owner)
    yield from _ends_of_name(words, quality)
    if words[0] not in _GENERIC_WORDS:
        yield words[0], quality * 0.5


def _names_without_tails(
    words: tuple[str, ...], quality: float, owner: tuple[str, ...]
) -> Iterator[Name]:
    """Yield the words without ends that say little, such as units."""
    rest = words
    weight = quality
    while len(rest) > 1 and rest[-1] in _ENGLISH_TAILS:
        weight *= _ENGLISH_TAILS[rest[-1]]
        rest = rest[:-1]
        is_generic = len(rest) == 1 and rest[0] in _GENERIC_WORDS
        if is_generic:
            continue
        if _ends_owner(rest, owner):  # contract_amount of crm_contract
            yield " ".join(rest), quality * _OWNERS_OWN
        else:
            yield " ".join(rest), weight

    if rest == words:
        return

    for start in range(1, len(rest)):  # the weight of gross_weight_kg
        yield " ".join(rest[start:]), weight * 0.72


def _ends_of_name(words: tuple[str, ...], quality: float) -> Iterator[Name]:
    for start in range(1, len(words)):
        share = 0.72
        if words[start] in _GENERIC_WORDS:
            share = 0.45

        yield " ".join(words[start:]), quality * share


def _stems(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(stem, words))


def _names_owner(words: tuple[str, ...], owner: tuple[str, ...]) -> bool:
    """Tell whether a column's words begin with its table's, and go on."""
    if len(words) <= len(owner):
        return False

    return _stems(words[: len(owner)]) == owner


def _ends_owner(words: tuple[str, ...], owner: tuple[str, ...]) -> bool:
    """Tell whether the table's words end with these, and begin with others."""
    if len(words) >= len(owner):
        return False

    return _stems(words) == owner[-len(words) :]


def _owned_names(column: Column, owner: _Owner) -> Iterator[Name]:
    for text, quality in _spelled(column):
        if has_han(text):
            yield from _owned_han_names(normalise(text), quality, owner.han)
            continue

        words = english_words(text)
        if not words or not owner.words:
            continue
        # "devices installed by Ada" begins with the thing asked for
        if words[-1] == _BY or _names_owner(words, owner.words):
            continue

        yield " ".join((*owner.words, *words)), quality * 0.97
        yield " ".join((owner.words[-1], *words)), quality * 0.9


def _owned_han_names(text: str, quality: float, owners: tuple[str, ...]) -> Iterator[Name]:
    bare, quality = list(_without_prefixes(text, quality))[-1]
    for owner in owners:
        names_owner = bare.startswith(owner) and bare != owner
        if not names_owner:
            yield owner + bare, quality * 0.97


def _han_core(text: str) -> str:
    for tail in filter(text.endswith, _HAN_TABLE_TAILS):
        core = text.removesuffix(tail)
        if len(core) > 1:
            return core

    return text


def _han_table_names(text: str, quality: float) -> Iterator[Name]:
    yield text, quality
    yield f"{text}{_SAID_TABLE_HAN}", quality
    core = _han_core(text)
    if _LINES in text[len(core) :]:  # the lines of an order are not orders
        quality *= 0.6

    yield core, quality * 0.97
    yield f"{core}{_SAID_TABLE_HAN}", quality * 0.97
    for start in range(1, len(core) - 1):
        ending = core[start:]
        if ending not in _GENERIC_HAN:
            yield ending, quality * 0.72

    for end in range(2, len(core)):
        beginning = core[:end]
        if beginning not in _GENERIC_HAN:
            yield beginning, quality * 0.45


def _without_prefixes(text: str, quality: float) -> Iterator[Name]:
    """Yield the text as it is, then again after each prefix that is taken off."""
    yield text, quality
    for prefix in _HAN_PREFIXES:
        rest = text.removeprefix(prefix)
        if rest != text and len(rest) > 1:
            text = rest
            quality *= 0.96
            yield text, quality


def _han_column_names(text: str, quality: float, owners: tuple[str, ...]) -> Iterator[Name]:
    forms = list(_without_prefixes(text, quality))
    yield from forms
    core, quality = forms[-1]
    for owner in owners:
        rest = core.removeprefix(owner)
        if rest and rest != core:
            yield rest.lstrip(_OF), quality * 0.8

    for tail, weight in _HAN_TAILS.items():
        rest = core.removesuffix(tail)
        if rest == core or len(rest) < 2:
            continue

        yield rest, quality * _share_without_tail(rest, weight, owners)
        yield from _han_parts(rest, quality * weight)

    yield from _han_parts(core, quality)


def _share_without_tail(name: str, weight: float, owners: tuple[str, ...]) -> float:
    """Return how good a name is that lost a tail of this weight.

    The `处方` of 处方金额 in 门诊处方 is the table's own thing.
    """
    if weight <= 0.9 or _MASS.search(name):
        return weight

    is_owner = any(owner.endswith(name) for owner in owners)
    if is_owner:
        return _OWNERS_OWN

    return weight


def _han_parts(text: str, quality: float) -> Iterator[Name]:
    """Yield parts of at least two characters.

    An end is worth most, because it carries the meaning in Chinese.
    """
    size = len(text)
    for start, end in itertools.combinations(range(size + 1), 2):
        part = text[start:end]
        is_part = 2 <= len(part) < size
        if not is_part or part in _GENERIC_HAN:
            continue

        weight = 0.45
        if end == size:
            weight = 0.75
        elif start == 0:
            weight = 0.6

        yield part, quality * weight


def borrowed_names(names: Mapping[str, float]) -> dict[str, float]:
    """Return general language's names for the same (`营收` for `营业收入`), with their quality."""
    borrowed: list[Name] = []
    for name, quality in names.items():
        if quality < 0.6:
            continue

        synonyms = _han_synonyms(name) if has_han(name) else _english(name)
        for synonym in synonyms:
            borrowed.append((synonym, quality * BORROWED))

    return _best(borrowed)


def _han_synonyms(name: str) -> Iterator[str]:
    yield from ZH_TO_ZH.get(name, ())
    yield from ZH_TO_EN.get(name, ())
    for cut in range(1, len(name)):
        head = name[:cut]
        tail = name[cut:]
        for synonym in ZH_TO_ZH.get(tail, ()):
            yield head + synonym

        if cut > 1:
            for synonym in ZH_TO_ZH.get(head, ()):
                yield synonym + tail

        of_head = ZH_TO_EN.get(head, ())
        of_tail = ZH_TO_EN.get(tail, ())
        for first, second in itertools.product(of_head, of_tail):
            yield f"{first} {second}"


def _english(name: str) -> Iterator[str]:
    words = name.split(" ")
    whole = key_of(name, stems=True)
    yield from EN_TO_EN.get(whole, ())
    yield from EN_TO_ZH.get(whole, ())
    if not 2 <= len(words) <= 3:
        return

    for index, word in enumerate(words):
        for synonym in EN_TO_EN.get(key_of(word, stems=True), ()):
            is_more = word in synonym.split(" ")  # an "average list price" is no average price
            if not is_more:
                yield " ".join((*words[:index], synonym, *words[index + 1 :]))

    for cut in range(1, len(words)):
        head = " ".join(words[:cut])
        tail = " ".join(words[cut:])
        of_head = EN_TO_ZH.get(key_of(head, stems=True), ())
        of_tail = EN_TO_ZH.get(key_of(tail, stems=True), ())
        for first, second in itertools.product(of_head, of_tail):
            yield first + second
