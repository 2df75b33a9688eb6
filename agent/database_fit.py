"""Scores how well each of several databases fits a question, without input or output.

A score adds up how well a database's texts cover the words of the question, and how well the rules'
lexicon of it explains them. A database for which the rules can read the whole question gets a
bonus.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from common.inquiry import Readability
from knowledge.tables.question_coverage import QuestionCoverage, scores
from rules.linking.explained import ExplainedWords, explained_scores

# Parts of the best score.
_READABLE = 0.5  # bonus of a database for which the rules can read the whole question
_NEAR = 0.95  # from here on, another database may be meant as well
_NEAR_UNREAD = 0.6  # the same where the best one is not readable: single words are weak evidence
_LEAST_PART = 0.5  # of the best score; needed where a question is explained as well as by the best

_CERTAIN = 0.6  # least degree to which a word is explained that counts as certain
_SURE, _SOMEHOW = 0.8, 0.4  # what a database has to know in part, if another one knows it
_BY_NAME = 0.92  # least degree to which a word is explained by the name of a table or by a value
_BY_WHOLE_NAME = 0.96  # the same by the whole name of a table
_WHOLLY = 0.9  # least degree to which translated words are explained that the rules would read
_AS_WELL = 0.9  # least part of the best one's explanation that counts as equally good
_AS_WELL_TRANSLATED = 0.8  # the same where words are translated


@dataclass(frozen=True)
class DatabaseEvidence:
    """The words and values of a question that a database knows.

    Attributes:
        coverage: how well its texts say the words.
        explained: how well the rules' lexicon explains them.
        readability: whether the rules can write SQL for the question.
    """

    coverage: QuestionCoverage
    explained: ExplainedWords = ExplainedWords()
    readability: Readability = "unreadable"

    @property
    def is_readable(self) -> bool:
        """Tell whether the rules can write SQL for the question."""
        return self.readability == "readable"


def word_scores(evidence: Mapping[str, DatabaseEvidence]) -> dict[str, float]:
    """Return the scores above zero, the best first, without the bonus for what is readable."""
    by_coverage = scores({name: one_evidence.coverage for name, one_evidence in evidence.items()})
    explained = explained_scores(
        {name: one_evidence.explained for name, one_evidence in evidence.items()}
    )
    total = {name: by_coverage[name] + explained[name] for name in evidence}
    best_first = sorted(total, key=lambda name: -total[name])
    return {name: total[name] for name in best_first if total[name] > 0}


def databases_that_fit(evidence: Mapping[str, DatabaseEvidence]) -> Sequence[str]:
    """Return the databases that the question may be about, the likeliest first."""
    readable = [name for name, one_evidence in evidence.items() if one_evidence.is_readable]
    score = word_scores(evidence)
    fitting = _best_databases(score, evidence, readable) if score else readable
    foreign = [name for name in evidence if _may_know(name, fitting, evidence)]
    found = list(dict.fromkeys([*fitting, *foreign]))
    if len(found) < 2:
        return found

    also = (name for name in evidence if _is_choice(evidence[name], fitting, evidence))
    return list(dict.fromkeys([*found, *also]))


def _best_databases(
    score: Mapping[str, float],
    evidence: Mapping[str, DatabaseEvidence],
    readable: Sequence[str],
) -> list[str]:
    """Return the databases with the best scores, the likeliest first.

    The rules can write SQL for the question in `readable` ones, but may have passed over words
    there and read another question. Then the best without a bonus for those may be meant as well.
    """
    best = _fitting(score, evidence, readable)
    read_whole = [name for name in readable if _knows_all(evidence[name], evidence.values())]
    if read_whole == readable:
        return best

    likeliest = _fitting(score, evidence, read_whole)
    sure = evidence[likeliest[0]].explained
    # One that knows but a part of what the likeliest knows reads another question.
    more = [name for name in best if not sure.is_as_much(evidence[name].explained, _SURE, _SOMEHOW)]
    return list(dict.fromkeys([*likeliest, *more]))


def _is_choice(
    one: DatabaseEvidence, fitting: Sequence[str], evidence: Mapping[str, DatabaseEvidence]
) -> bool:
    """Tell whether it explains as much as what fits, if only the rules can't read it there.

    That is too little to ask for, but where the user is asked anyway, it is among the choices.
    """
    others = (evidence[name].explained for name in fitting)
    return one.explained.is_anchored(_BY_NAME) and all(
        one.explained.is_as_much(other, _CERTAIN, _NEAR) for other in others
    )


def _may_know(name: str, fitting: Sequence[str], evidence: Mapping[str, DatabaseEvidence]) -> bool:
    """Tell whether a database without names in the question's language may be meant as well.

    It may know, under a name that no translation leads to, a word that what fits leaves
    unexplained. What others know by the very name of a table or a value, it has to know as well.
    Where several fit, the user is asked anyway: it is among the choices if it knows that much.
    """
    one = evidence[name].explained
    others = [evidence[other].explained for other in fitting]
    if not one.is_foreign or any(other.is_foreign for other in others):
        return False
    if not others:
        is_told_apart = not all(other.explained.is_foreign for other in evidence.values())
        return is_told_apart and bool(one.unknown)

    alike = [other for other in others if one.is_as_much(other, _BY_NAME, _SOMEHOW)]
    if one.how_well and len(alike) == len(others) > 1:
        return True
    if any(other.unknown & one.untranslated for other in alike):
        return True
    # What no translation leads to may be called by another one, where nothing better is known.
    if any(other.unknown & one.unknown and not other.is_anchored(_BY_NAME) for other in alike):
        return True

    return one.is_anchored(_BY_NAME) and any(_may_be_the_same(one, other) for other in others)


def _may_be_the_same(one: ExplainedWords, other: ExplainedWords) -> bool:
    """Tell whether `one` knows by translations, or may know otherwise, what `other` knows.

    The rules don't read by the dictionary's translations, nor many names of several words by those
    that they know: that they can't read is a sign only where they may lack a path between tables.
    """
    if one.may_hide(other, _CERTAIN, _SOMEHOW):
        return True
    if not one.translated and len(one.named_tables(_BY_NAME)) > 1:
        return False

    return one.is_as_much(other, _CERTAIN, _AS_WELL_TRANSLATED)


def _fitting(
    score: Mapping[str, float],
    evidence: Mapping[str, DatabaseEvidence],
    readable: Collection[str],
) -> list[str]:
    """Return the databases with the best score or nearly the best; readable ones get a bonus."""
    evidence = {name: _read_in(one, name in readable) for name, one in evidence.items()}
    score = dict(score)
    bonus = _READABLE * max(score.values())
    for name in readable:
        score[name] = score.get(name, 0.0) + bonus

    best, *others = sorted(score, key=lambda name: -score[name])
    return [best, *(name for name in others if _may_be_meant(name, best, score, evidence))]


def _read_in(one: DatabaseEvidence, is_readable: bool) -> DatabaseEvidence:  # noqa: FBT001
    if one.is_readable and not is_readable:
        return replace(one, readability="unreadable")

    return one


def _knows_all(one: DatabaseEvidence, all_of_them: Iterable[DatabaseEvidence]) -> bool:
    """Tell whether `one` explains, somehow, whatever any of them explains with certainty.

    The rules pass over words that they don't know: what they read then is another question.
    """
    return all(
        one.explained.is_as_much(other.explained, _SURE, _SOMEHOW, unless_understood=_BY_WHOLE_NAME)
        for other in all_of_them
    )


def _may_be_meant(
    name: str, best: str, score: Mapping[str, float], evidence: Mapping[str, DatabaseEvidence]
) -> bool:
    part = score[name] / score[best]
    one, other = evidence[name], evidence[best]
    is_understood = other.is_readable or other.explained.is_translated_wholly(_WHOLLY)
    near = _NEAR if is_understood else _NEAR_UNREAD
    if part >= near:
        return True
    if part < _LEAST_PART or (other.is_readable and one.readability == "unreadable"):
        return False

    return one.explained.is_as_much(other.explained, _CERTAIN, _AS_WELL, unless_understood=_SURE)
