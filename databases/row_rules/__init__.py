"""Row rules: which rows and values of a table a group may see, for databases that may not be changed.

    format       the operator's file → rules with their lines
    predicates   SQL that the operator writes → trees with places for the actor
    naming       what the names in that SQL mean, whatever statement it is put into
    binding      rules + what the server has → rules that fit it, and problems
    actors       what the rules leave one actor
    planning     what PostgreSQL itself says of the operator's SQL
    relations    which rule holds for a relation that a statement names
    subqueries   what stands in a ruled table's place
    references   names of columns that would not survive the rewriting
    grouping     primary keys in GROUP BY, which subqueries don't have
    judging      what may read rows without naming a table
    rewriting    statement → the statement in which ruled tables are subqueries
    comparing    tree → text that is proven to be that tree
    texts        what users are told

A ruled table becomes `(SELECT columns FROM schema.table WHERE predicate OFFSET 0) AS alias`, on PostgreSQL's own tree
of the statement. `OFFSET 0` keeps the planner from running the statement's own conditions, which may raise errors that
quote values, on rows that the predicate leaves out.
"""

from databases.row_rules.actors import OPEN, ActorRows, Limits, RowRules
from databases.row_rules.format import RowRulesError

__all__ = ["OPEN", "ActorRows", "Limits", "RowRules", "RowRulesError"]
