"""Row rules: the rows and values of a table that a group may see, where the database may not be
changed.

    rule_file       the operator's file → rules with their lines
    predicates      SQL that the operator writes → trees with places for the actor
    name_binding    the names in that SQL → tables and columns, whatever statement it is put into
    rule_binding    rules + what the server has → rules that fit it, and problems
    planning        rules → what PostgreSQL itself says of the operator's SQL
    actors          rules + an actor → what that actor may see; the only way in from outside
    judging         refuses what may read rows without naming a table
    rewriting       statement → the statement in which ruled tables are subqueries
    relations       relation that a statement names → the rule that holds for it
    row_references  keeps the names of columns that would not survive the rewriting
    key_grouping    keeps GROUP BY a primary key, which subqueries don't have
    subqueries      rule → the subquery in the table's place
    texts           what users are told

A ruled table becomes `(SELECT columns FROM schema.table WHERE predicate OFFSET 0) AS alias`, on
PostgreSQL's own tree of the statement. `OFFSET 0` keeps the planner from running the statement's
own conditions, which may raise errors that quote values, on rows that the predicate leaves out.
"""

from guard.row_rules.actors import OPEN, ActorRows, RowLimits, RowRules
from guard.row_rules.rule_file import RowRulesError

__all__ = ["OPEN", "ActorRows", "RowLimits", "RowRules", "RowRulesError"]
