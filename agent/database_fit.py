"""Which of several databases fit a question, by what is known of each: numbers, no input or output.

Two signs are added up: how well a database's texts say the words of the question, and how well the
rules' lexicon of it explains them. Where the rules can read the question as a whole, a database
fits better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knowledge.tables.question_coverage import QuestionCoverage, scores
from rules.linking.explained import ExplainedWords, explained_scores

_READABLE = 0.5  # of the best score, for a database in which the rules can read the question
_NEAR = 0.95  # of the best score; what reaches it may be meant as well
_NEAR_UNREAD = 0.6  # the same, where the best one can't be read: then only single words speak
_LEAST = 0.6  # of the best score, of what explains the question as well
_CERTAIN = 0.6  # how well a word is explained at least that tells for certain
_AS_WELL = 0.9  # of how well the best one explains it


@dataclass(frozen=True)
class DatabaseEvidence:
    """The words and values of a question that a database knows.

    Attributes:
        coverage: how well its texts say the words.
        explained: how well the rules' lexicon explains them.
        is_readable: whether the rules can write SQL for the question.
    """

    coverage: QuestionCoverage
    explained: ExplainedWords = ExplainedWords()
    is_readable: bool = False


def ranked(evidence: Mapping[str, DatabaseEvidence]) -> dict[str, float]:
    """Return the scores of the databases that know anything of the question, the best first.

    What can be read does not count yet.
    """
    said = scores({name: one.coverage for name, one in evidence.items()})
    explained = explained_scores({name: one.explained for name, one in evidence.items()})
    total = {name: said[name] + explained[name] for name in evidence}
    known = sorted((name for name in total if total[name] > 0), key=lambda name: -total[name])
    return {name: total[name] for name in known}


def databases_that_fit(evidence: Mapping[str, DatabaseEvidence]) -> Sequence[str]:
    """Return the databases that the question may be about, the likeliest first."""
    readable = [name for name, one in evidence.items() if one.is_readable]
    score = ranked(evidence)
    if not score:
        return readable

    bonus = _READABLE * max(score.values())
    for name in readable:
        score[name] = score.get(name, 0.0) + bonus

    best, *others = sorted(score, key=lambda name: -score[name])
    return [best, *(name for name in others if _may_be_meant(name, best, score, evidence))]


def _may_be_meant(
    name: str, best: str, score: Mapping[str, float], evidence: Mapping[str, DatabaseEvidence]
) -> bool:
    part = score[name] / score[best]
    one, other = evidence[name], evidence[best]
    if part >= (_NEAR if other.is_readable else _NEAR_UNREAD):
        return True
    if part < _LEAST or (other.is_readable and not one.is_readable):
        return False

    return one.explained.is_as_much(other.explained, _CERTAIN, _AS_WELL)
