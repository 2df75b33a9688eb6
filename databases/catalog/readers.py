"""Which relations show rows of given tables: views over them at any depth, partitions, parents of
inheriting tables.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable

from common.errors import StatementRejected
from guard import ServerFacts
from guard.facts import Key
from guard.walk import walk
from sqltree.parsing import parse


def readers_of(keys: Collection[Key], facts: ServerFacts) -> frozenset[Key]:
    """`keys`, and all relations through which rows of them may be seen.

    A view whose query can't be followed, or calls functions of the user's that may read tables,
    counts as one; all relations do if the server does not tell what views read.
    Parsing the queries of thousands of views takes a second: call it in a thread.
    """
    if not keys:
        return frozenset()
    if not facts.is_followable:
        return facts.relations | frozenset(keys)
    above: defaultdict[Key, set[Key]] = defaultdict(set)
    for child, parents in facts.parents.items():
        for parent in parents:
            above[child].add(parent)
            above[parent].add(child)
    doubtful = set(keys)
    for view, query in facts.view_definitions.items():
        reads = _reads(query, facts)
        if reads is None or view in facts.read_functions:
            doubtful.add(view)
        for read in reads or ():
            above[read].add(view)
    return _reached(doubtful, above)


def _reached(keys: Iterable[Key], above: "defaultdict[Key, set[Key]]") -> frozenset[Key]:
    found = set(keys)
    pending = list(found)
    while pending:
        new = above[pending.pop()] - found
        found |= new
        pending += new
    return frozenset(found)


def _reads(query: str, facts: ServerFacts) -> list[Key] | None:
    """The relations that a view's query reads; None when it can't be told."""
    try:
        (statement,) = parse(query)
        relations = walk(statement.kind, statement.node).relations
    except (StatementRejected, ValueError, RecursionError):
        return None
    return [facts.key(relation.schema, relation.name) for relation in relations]
