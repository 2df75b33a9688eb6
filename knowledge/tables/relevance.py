"""Rank tables for a question, when there are too many to show a model all of them.

By BM25 over words, then along the foreign keys, declared or told by names.

Chinese is cut into pairs of characters, Latin at case, digits and underscores into words without
their plural endings. Words also match by their stem (`enrolled`, `enrollment`), by their usual
abbreviation (`emp`) and by what the other language calls them, for less; of all the ways in which a
table says one word only the best counts. A table that can be joined to good ones and says further
words of the question rises. Of many tables that say the same words, all but the first few give way
to others, because a question rarely needs more than one of them. A table that joins or is joined by
good ones is good as well, also when the question has no word for it.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest, nsmallest
from itertools import chain
from math import log

from common.meanings import TableKey
from common.values import Catalog, Table
from knowledge.language.question_terms import Form, forms
from knowledge.language.terms import has_root, is_han, name_in_comment, roots_of, spelled_out, terms
from knowledge.tables.table_graph import TableGraph
from knowledge.tables.table_texts import (
    SchemaTextPart,
    ShownValues,
    all_values,
    metrics_of,
    texts_of,
)
from knowledge.words import WORDS

# BM25's constants; a table of many columns is hardly less likely to be meant than one of few.
_K1, _B = 1.2, 0.3
# A table's own names say more than its columns'.
_WEIGHTS = {"name": 3, "comment": 3, "meaning": 3, "metric": 2}
# Added to the score, as a share of it, when the question says the whole name of the table.
_WHOLE_NAME = 0.5
_MOST_NAMED = 600  # best tables for which that is looked at, because it takes a while
_RANK_OFFSET = 60  # of the reciprocal ranks by which two rankings become one
# Questions whose tables are favoured, each by less than the one before.
_MOST_ALIKE_QUESTIONS, _ALIKE_DECAY = 5, 0.25
# Of a table that holds a value which the question names, for each unit of the value's rarity
_VALUE_WEIGHT = 1.0
# Of a table's score, what those joined to it get.
_PARENT_SHARE, _CHILD_SHARE, _LINK_SHARE = 0.35, 0.1, 0.4
_BETWEEN = 0.9  # of the lower score of two tables, what the one that links them has at least
_MOST_LEADING = 3  # tables that are named as the reason for another one
_SPREADING = 12  # best tables whose score is passed on
# Tables that say the same words, and what the others of them keep of their score.
_ALIKE, _ALIKE_SHARE = 4, 0.6
_LOOKED_AT = 60  # best tables among which those are found, at least
# Best tables, and what those within a few joins of them gain, as a share of their own.
_ANCHORS, _NEAR_SHARE = 3, 1.0
_COMMON = 1_000  # tables; a word that more of them have is ignored when the question has rarer ones
_BRIDGED = 6  # best tables between which the shortest way is looked for

_NOWHERE = array("I")


@dataclass(frozen=True)
class RankedTable:
    """A table that has to do with a question.

    Attributes:
        score: only means something beside those of the same question.
        led_by: tables it can be joined to that say the question's words better, at most three, the
            best first; each with whether this table refers to it, rather than it to this one.
    """

    table: Table
    score: float
    led_by: tuple[tuple[Table, bool], ...]


@dataclass(frozen=True)
class Hints:
    """Hints beside a question's words at the tables it needs.

    Tables that are not there are ignored.

    Attributes:
        first: lead whatever their words, and lead others with them.
        alike: the tables of what answered similar questions, the most similar question first.
        holding: tables with a value that the question names → how many tables have it.
        held: columns with such a value, with their tables.
        near: tables that mean what the question means, the nearest first.
    """

    first: tuple[TableKey, ...] = ()
    alike: tuple[tuple[TableKey, ...], ...] = ()
    holding: Mapping[TableKey, int] = field(default_factory=dict)
    held: tuple[tuple[TableKey, str], ...] = ()
    near: tuple[TableKey, ...] = ()

    def also_holding(self, holding: Mapping[TableKey, int]) -> "Hints":
        """Return the hints with further tables that hold values."""
        return replace(self, holding={**holding, **self.holding})


NO_HINTS = Hints()


class TableIndex:
    """Ranks the tables of one catalogue."""

    def __init__(self, catalog: Catalog, shown: ShownValues = all_values) -> None:
        self._tables = catalog.tables
        self._shown = shown
        self._metrics = metrics_of(catalog)
        self._numbers = {table.key: number for number, table in enumerate(catalog.tables)}
        # Term → a table's number, its count there, the next table's …
        self._postings: dict[str, array[int]] = {}
        self._lengths = []
        self._has_han = bytearray(len(self._tables))
        self._has_latin = bytearray(len(self._tables))
        for number, table in enumerate(catalog.tables):
            counts = _counted(self.texts_of(table))
            self._has_han[number] = any(map(is_han, counts))
            self._has_latin[number] = any(map(has_root, counts))
            self._lengths.append(sum(counts.values()))
            for term, count in counts.items():
                self._postings.setdefault(term, array("I")).extend((number, count))

        self._mean_length = sum(self._lengths) / max(1, len(self._lengths)) or 1.0
        self._damping = [
            _K1 * (1 - _B + _B * length / self._mean_length) for length in self._lengths
        ]
        self._names = [_name_terms(table) for table in catalog.tables]
        self._graph = TableGraph(catalog.tables)

    def texts_of(self, table: Table) -> Iterator[SchemaTextPart]:
        """Return the texts by which the table is found."""
        return texts_of(table, self._shown, self._metrics.get(table.key, ()))

    def joining(self, key: TableKey) -> Collection[str]:
        """Return the columns by which the table is joined to others."""
        if key in self._numbers:
            return self._graph.joining[self._numbers[key]]

        return ()

    def ranked(self, question: str, most: int, hints: Hints = NO_HINTS) -> list[Table]:
        """Return the tables for the question, at most `most`, the most relevant first.

        When fewer have anything to do with it, the others follow, those that most tables refer to
        first.
        """
        scores, words_of = self._scores(question, hints.holding)
        self._favour_hinted(scores, hints)
        numbers = [number for number, _ in self._expanded(scores, words_of, most)]
        if hints.near:
            numbers = self._fused_after_leading(numbers, hints)[:most]
        if len(numbers) < most:
            numbers += self._most_referred(most - len(numbers), set(numbers))

        return [self._tables[number] for number in numbers]

    def _fused_after_leading(self, numbers: Sequence[int], hints: Hints) -> list[int]:
        """Rank tables by words and by meaning, behind those that the other hints name."""
        leading = {*hints.first, *chain(*hints.alike[:_MOST_ALIKE_QUESTIONS])}
        shares = self._fused(numbers, hints.near)

        def rank(number: int) -> tuple[bool, float]:
            return self._tables[number].key not in leading, -shares[number]

        return sorted(shares, key=rank)

    def _most_referred(self, count: int, left_out: Collection[int]) -> list[int]:
        """Return further tables, those that most tables refer to first."""

        def rank(number: int) -> tuple[int, int]:
            return -len(self._graph.referring(number)), number

        others = (number for number in range(len(self._tables)) if number not in left_out)
        return nsmallest(count, others, key=rank)

    def found(self, question: str, most: int, hints: Hints = NO_HINTS) -> list[RankedTable]:
        """Return tables that have to do with the question, at most `most`, the best first."""
        scores, words_of = self._scores(question, hints.holding)
        by_words = dict(scores)
        self._favour_hinted(scores, hints)
        expanded = self._expanded(scores, words_of, max(most, len(hints.near)))
        if hints.near:
            shares = self._fused([number for number, _ in expanded], hints.near)
            expanded = sorted(shares.items(), key=lambda share: -share[1])

        ranked = []
        for number, score in expanded[:most]:
            led_by = self._led_by(number, by_words)
            ranked.append(RankedTable(self._tables[number], score, led_by))

        return ranked

    def _fused(self, numbers: Sequence[int], near: Sequence[TableKey]) -> dict[int, float]:
        """Rank tables by words and by meaning together, by their reciprocal ranks in both."""
        nearest = [self._numbers[key] for key in near if key in self._numbers]
        shares: defaultdict[int, float] = defaultdict(float)
        for ranking in (numbers, nearest):
            for rank, number in enumerate(ranking):
                shares[number] += 1 / (_RANK_OFFSET + rank)

        return shares

    def _led_by(self, number: int, by_words: Mapping[int, float]) -> tuple[tuple[Table, bool], ...]:
        """Return the better tables that it is joined to, and whether it refers to each."""
        above = self._graph.above[number]
        own = by_words.get(number, 0.0)
        joined = {*above, *self._graph.referring(number)}
        better = (other for other in joined if by_words.get(other, 0.0) > own)
        leading = nlargest(_MOST_LEADING, better, key=lambda other: (by_words[other], -other))
        return tuple((self._tables[other], other in above) for other in leading)

    def _expanded(
        self, scores: dict[int, float], words_of: Mapping[int, int], most: int
    ) -> list[tuple[int, float]]:
        """Return the best tables by their own scores and by those of tables they can be joined to.

        Changes the scores.
        """
        best = max(scores.values(), default=1.0)
        self._favour_near(scores, words_of)
        spread = self._spread(scores)
        for number, of_linked in self._bridges(scores).items():
            spread[number] = max(spread.get(number, 0.0) + best * _LINK_SHARE, of_linked)

        return _without_many_alike(spread, words_of, most)

    def _scores(
        self, question: str, holding: Mapping[TableKey, int]
    ) -> tuple[dict[int, float], dict[int, int]]:
        """Score each table by words; return the words that it says as bits of a number as well."""
        asked = forms(question)
        scores, words_of = self._scores_by_words(asked)
        for key, count in holding.items():
            if key in self._numbers:
                number = self._numbers[key]
                scores[number] += _VALUE_WEIGHT * self._rarity(count)

        self._favour_named(scores, asked)
        return scores, words_of

    def _scores_by_words(
        self, asked: Mapping[str, Form]
    ) -> tuple[defaultdict[int, float], defaultdict[int, int]]:
        scores: defaultdict[int, float] = defaultdict(float)
        words_of: defaultdict[int, int] = defaultdict(int)
        counted: dict[str, dict[int, float]] = {}
        places = [(self._postings.get(term, _NOWHERE), form) for term, form in asked.items()]
        for postings, form in sorted(places, key=lambda each: len(each[0])):
            if scores and len(postings) > 2 * _COMMON:
                break

            of_word = counted.setdefault(form.word, {})
            bit = 0
            if not form.is_faint:
                bit = 1 << list(counted).index(form.word)

            for number, score in self._matches(postings, form):
                before = of_word.get(number, 0.0)
                if score > before:  # of the ways to say a word only the best counts
                    of_word[number] = score
                    scores[number] += score - before
                    words_of[number] |= bit

        return scores, words_of

    def _favour_named(self, scores: dict[int, float], asked: Mapping[str, Form]) -> None:
        """Raise the best tables by the share of their names that the question says."""
        shares = {term: form.share for term, form in asked.items()}
        alone = {term: min(1.0, form.alone) for term, form in asked.items()}
        for number in nlargest(_MOST_NAMED, scores, key=scores.__getitem__):
            counting = alone
            if self._has_han[number]:
                counting = shares

            scores[number] *= 1 + _WHOLE_NAME * _said_share(self._names[number], counting)

    def _matches(self, postings: "array[int]", form: Form) -> Iterator[tuple[int, float]]:
        """Yield the tables of one term's postings with their scores."""
        rarity = self._rarity(len(postings) // 2) * (_K1 + 1)
        shares = (rarity * form.alone, rarity * form.share)
        speaks = self._has_latin
        if is_han(form.word):
            speaks = self._has_han

        for number, count in zip(postings[::2], postings[1::2], strict=True):
            yield number, shares[speaks[number]] * count / (count + self._damping[number])

    def _rarity(self, containing: int) -> float:
        return log(1 + (len(self._tables) - containing + 0.5) / (containing + 0.5))

    def _favour_hinted(self, scores: dict[int, float], hints: Hints) -> None:
        best = max(scores.values(), default=1.0)
        gains: defaultdict[TableKey, float] = defaultdict(float)
        for rank, keys in enumerate(hints.alike[:_MOST_ALIKE_QUESTIONS]):
            for key in keys:
                gains[key] = max(gains[key], best / (1 + rank * _ALIKE_DECAY))

        for key in hints.first:
            gains[key] += 2 * best

        for key, gain in gains.items():
            if key in self._numbers:
                number = self._numbers[key]
                scores[number] = scores.get(number, 0.0) + gain

    def _favour_near(self, scores: dict[int, float], words_of: Mapping[int, int]) -> None:
        """Raise tables that can be joined to the best and say words that those don't say."""
        gains: dict[int, float] = {}
        for start in nlargest(_ANCHORS, scores, key=scores.__getitem__):
            for number, way in self._graph.ways_from(start).items():
                says_more = words_of.get(number, 0) & ~words_of.get(start, 0)
                if way.joins and number in scores and says_more:
                    gain = _NEAR_SHARE * way.sureness / way.joins
                    gains[number] = max(gain, gains.get(number, 0.0))

        for number, gain in gains.items():
            scores[number] *= 1 + gain

    def _spread(self, scores: Mapping[int, float]) -> dict[int, float]:
        """Raise the scores of tables that are joined to the best ones."""
        leading = nlargest(_SPREADING, scores, key=scores.__getitem__)
        shares_of: defaultdict[int, list[float]] = defaultdict(list)
        for number in leading:
            for target, sure in self._graph.above[number].items():
                shares_of[target].append(scores[number] * _PARENT_SHARE * sure)
                for beyond, as_sure in self._graph.above[target].items():
                    shares_of[beyond].append(scores[number] * _PARENT_SHARE**2 * sure * as_sure)

            for child, sure in self._graph.referring(number).items():
                shares_of[child].append(scores[number] * _CHILD_SHARE * sure)

        total = dict(scores)
        for number, shares in shares_of.items():
            total[number] = total.get(number, 0.0) + sum(sorted(shares)[-2:])

        return total

    def _bridges(self, scores: Mapping[int, float]) -> dict[int, float]:
        """Return tables over which the best can be joined, and the score that links bring them.

        A table that alone links two others comes right behind them; those of longer ways are less
        sure to be meant.
        """
        best = nlargest(_BRIDGED, scores, key=scores.__getitem__)
        over: dict[int, float] = {}
        for position, start in enumerate(best):
            ways = self._graph.ways_from(start)
            for end in best[position + 1 :]:
                if end not in ways:
                    continue

                is_link = ways[end].joins == 2  # noqa: PLR2004 - one to each of both
                score = 0.0
                if is_link:
                    score = _BETWEEN * scores[end] * ways[end].sureness

                step = ways[end].before
                while step != start:
                    over[step] = max(score, over.get(step, 0.0))
                    step = ways[step].before

        return over


def _without_many_alike(
    scores: Mapping[int, float], words_of: Mapping[int, int], most: int
) -> list[tuple[int, float]]:
    """Return the best tables with their scores.

    Those are lowered that say the same words as several better ones.
    """

    def best(count: int, ranked: Mapping[int, float]) -> list[int]:
        return nlargest(count, ranked, key=lambda number: (ranked[number], -number))

    alike = Counter[int]()
    lowered = {}
    for number in best(max(most, _LOOKED_AT), scores):
        words = words_of.get(number, 0)
        alike[words] += 1
        lowered[number] = scores[number]
        if words and alike[words] > _ALIKE:
            lowered[number] *= _ALIKE_SHARE

    return [(number, lowered[number]) for number in best(most, lowered)]


def _said_share(names: Iterable[frozenset[str]], asked: Mapping[str, float]) -> float:
    """Return the share of a table's name or comment that the question says; the greater of both."""
    shares = []
    for name in names:
        weight_said = sum(asked[term] for term in name if term in asked)
        shares.append(weight_said / len(name))

    return max(shares, default=0.0)


_TABLE_NOISE = WORDS.english.one_of("relevance.table_words")
_TABLE = WORDS.chinese.phrases("tables.ends")[0]


def _name_terms(table: Table) -> tuple[frozenset[str], ...]:
    texts = [table.name, name_in_comment(table.comment).removesuffix(_TABLE)]
    if table.meaning:
        texts.extend(table.meaning.names.all)

    names = [frozenset(spelled_out(text)) - _TABLE_NOISE for text in texts]
    return tuple(name for name in names if name)


def _counted(texts: Iterable[SchemaTextPart]) -> Counter[str]:
    """Count the terms of a table's texts, by the weights of these."""
    counts = Counter[str]()
    for kind, text, _ in texts:
        weight = _WEIGHTS.get(kind, 1)
        cut = terms if kind == "value" else roots_of
        for term in cut(text):
            counts[term] += weight

    return counts
