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
    """Return `keys`, and all relations through which rows of them may be seen.

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
        above[child] |= parents
        for parent in parents:
            above[parent].add(child)

    counted = {*keys, *(facts.view_definitions.keys() & facts.read_functions.keys())}
    for view, query in facts.view_definitions.items():
        try:
            reads = _reads(query, facts)
        except (StatementRejected, ValueError, RecursionError):
            counted.add(view)
            continue

        for read in reads:
            above[read].add(view)

    return _all_reachable(counted, above)


def _all_reachable(keys: Iterable[Key], above: "defaultdict[Key, set[Key]]") -> frozenset[Key]:
    reachable = set(keys)
    pending = list(reachable)
    while pending:
        new = above[pending.pop()] - reachable
        reachable |= new
        pending += new

    return frozenset(reachable)


def _reads(query: str, facts: ServerFacts) -> list[Key]:
    """Return the relations that a view's query reads; raises errors when it can't be followed."""
    (statement,) = parse(query)
    relations = walk(statement.kind, statement.node).relations
    return [facts.key(relation.schema, relation.name) for relation in relations]
