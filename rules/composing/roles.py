"""Tells how the question ties two tables: by a reference in a role, or by a link table."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from common.meanings import TableKey
from knowledge.language.atoms import words_of
from knowledge.language.cutting import has_han
from knowledge.language.inflection import stem
from knowledge.language.spoken_names import comment_names, english_words, table_names
from rules.composing.asked import Asked
from rules.query.pending import Choice
from rules.query.query import Query, references
from rules.query.refusals import ambiguous_way
from rules.reading import costs
from rules.reading.words import QuestionWords
from rules.schema.reference_graph import AmbiguousPath, is_default
from rules.schema.table_facts import Edge

_ROLE = 2  # characters


def said_reference(question: QuestionWords, ambiguity: AmbiguousPath) -> str | None:
    """Return the only reference of which a word stands in the question.

    "trips *started* at Harbor" names the reference to the station where they started.
    """
    question_stems = _said_words(question)
    scored = []
    for key, column in ambiguity.choices:
        own = _words_of_reference(question, key, column, ambiguity.target)
        scored.append((len(own & question_stems), column))

    best, *others = sorted(scored, reverse=True)
    is_only = best[0] > max((score for score, _ in others), default=0)
    return best[1] if is_only else None


def _said_words(question: QuestionWords) -> set[str]:
    stems: set[str] = set()
    for word in question.words:
        stems |= {stem(one) for one in words_of(word.mark.text)}

    return stems


def _words_of_reference(
    question: QuestionWords, table: TableKey, column: str | None, target: TableKey
) -> set[str]:
    """Return the words of a column's names, in their basic forms, but those of its target."""
    if not column:
        return set()

    names = [column, *comment_names(question.schema.column(table, column).comment)]
    own = {stem(word) for name in names for word in english_words(name)}
    return own - {stem(one) for one in words_of(target[1])} - {"id"}


def tied(asked: Asked, query: Query) -> Query:
    """Return the query through the link table that is said, where a reference is one in a role.

    A case has a leading lawyer, and a link table has all who take part in it. That is taken if it
    is said and the role isn't.

    Raises:
        Refusal: nothing is said; with the reference and the link tables as choices.
    """
    question = asked.question
    through = set(query.through)
    for one in references((query.conditions, query.dimensions, query.columns, query.measures)):
        edge = _only_reference(asked, query.base, one.table) if one.via is None else None
        if edge is None or is_default(edge) or _says_role(question, edge):
            continue

        links = question.graph.links_between(edge.child, edge.parent)
        choices: list[Choice] = [(edge.child, edge.columns[0])]
        choices += [(link, None) for link in links]
        chosen = question.settled.among(choices)
        if chosen is not None:
            through |= {chosen[0]} & set(links)
        elif links and through.isdisjoint(links):
            raise ambiguous_way(edge.parent, choices, question.lexicon)

    return replace(query, through=frozenset(through))


def _only_reference(asked: Asked, child: TableKey, parent: TableKey) -> Edge | None:
    """Return the reference by which rows belong to those of another table directly."""
    path = None
    if child != parent:
        with suppress(AmbiguousPath):
            path = asked.question.graph.up(child, parent)

    return path[0] if path is not None and len(path) == 1 else None


def _says_role(question: QuestionWords, edge: Edge) -> bool:
    """Tell whether the question names the reference, or the role that is a part of its name."""
    (column, *_) = edge.columns
    for word in question.words:
        for _, link in word.noun.columns if word.noun is not None else ():
            is_whole = link.quality >= costs.WHOLE_NAME
            if is_whole and (link.table, link.column) == (edge.child, column):
                return True

    if _words_of_reference(question, edge.child, column, edge.parent) & _said_words(question):
        return True

    text = "".join(word.mark.text for word in question.words)
    return any(role in text for role in _roles_in_han(question, edge))


def _roles_in_han(question: QuestionWords, edge: Edge) -> Iterator[str]:
    """Yield the beginnings of a reference's Chinese names: `主办` of 主办律师, `跟进` of 跟进人."""
    owners = [name for name in table_names(question.schema.table(edge.parent)) if has_han(name)]
    own = [name for name in table_names(question.schema.table(edge.child)) if has_han(name)]
    column = question.schema.column(edge.child, edge.columns[0])
    for name in comment_names(column.comment):
        role = name[:_ROLE]
        is_of_owner = any(owner.startswith(role) for owner in owners)
        is_of_owner = is_of_owner or any(role in name for name in own)
        if len(role) == _ROLE and has_han(role) and not is_of_owner:
            yield role
