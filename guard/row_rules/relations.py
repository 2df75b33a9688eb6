"""Find the rule that holds for a relation which a statement names.

A ruled table's own rule holds for all rows that are read through it, those of partitions and
children included, as with PostgreSQL's policies. A partition or child that has no rule of its own
gets its parent's, because the same rows must not show by another name. A view has its owner's
rights and shows what its query reads, so one that leads to a ruled table is refused, unless it has
a rule itself or the operator opened it. So is a parent some of whose children are ruled.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from common.errors import DatabaseUnavailable
from guard import AccessRules, ServerFacts
from guard.access import AccessCheck
from guard.columns import Read, missing
from guard.facts import Key
from guard.refusal_texts import refusal_of_object
from guard.row_rules import texts
from guard.row_rules.rule_binding import BoundTable, readable_columns
from guard.walk import Relation


@dataclass(frozen=True, eq=False)
class Relations:
    """Judges relations for actors whom the same tables are limited for.

    Attributes:
        tables: the ruled tables as the server has them.
        limited: those of them of which the actor may not see everything.
        views: those that the operator opened to actors under rules.
        functions: the same, as `schema.name`.
    """

    facts: ServerFacts
    tables: Mapping[Key, BoundTable]
    limited: frozenset[Key]
    views: frozenset[Key]
    functions: frozenset[str]

    def of(self, relation: Relation, is_alone: bool) -> BoundTable | None:
        """Return what limits a relation as a statement names it; raises what `rule` raises, and
        InvalidSql for none such.
        """
        read = Read(self.facts.key(relation.schema, relation.name), is_alone)
        if not self._access.is_known(relation, read.key):
            raise missing(relation, 0)

        return self.rule(read)

    def rule(self, read: Read) -> BoundTable | None:
        """Return what limits the relation; None: nothing.

        Raises:
            ForbiddenObject: it can't be read under these rules.
            DatabaseUnavailable: the server does not tell what views read.
        """
        if not self.facts.is_followable:
            raise DatabaseUnavailable(texts.NOT_FOLLOWABLE)

        is_opened = read.key in self.tables or read.key in self.views
        if is_opened:
            if read.key in self.limited:
                return self.tables[read.key]

            return None

        relatives = self._relatives(read.key)
        if relatives:
            return self._table_of_inheritance(read.key, relatives)
        if self._access.refusal(read) is not None:
            text = texts.RELATIVE_OF_RULED
            if read.key in self.facts.view_definitions:
                text = texts.FOLLOWS_RULED

            raise refusal_of_object(".".join(read.key), text)

        return None

    def _relatives(self, key: Key) -> frozenset[Key]:
        """Return the limited tables that the relation may inherit from.

        These are its topmost parents, and what is below these.
        """
        tops = self.facts.parents.get(key, frozenset())
        relatives = set(tops & self.limited)
        for limited in self.limited:
            its_tops = self.facts.parents.get(limited, frozenset())
            has_same_top = not tops.isdisjoint(its_tops)
            if has_same_top:
                relatives.add(limited)

        return frozenset(relatives)

    def _table_of_inheritance(self, key: Key, relatives: frozenset[Key]) -> BoundTable:
        (table, *others) = [self.tables[relative] for relative in sorted(relatives)]
        attributes = self.facts.attributes.get(key, ())
        columns = tuple(column.name for column in attributes)
        is_parent = table.key in self.facts.parents[key]
        has_all = set(table.columns).issubset(columns)
        is_only = is_parent and not others
        is_whole = has_all and not self._sees_through(table, key, columns)
        fits = is_only and is_whole
        if not fits:
            raise refusal_of_object(".".join(key), texts.RELATIVE_OF_RULED)

        readable = readable_columns(key, columns, self.facts)
        return replace(table, key=key, columns=columns, readable=readable)

    def _sees_through(self, table: BoundTable, key: Key, columns: tuple[str, ...]) -> bool:
        """Tell whether a generated column shows one that the parent's rule masks."""
        masks = [grant.masks for grant in table.grants]
        masked: set[str] = set().union(*masks)
        shown = set(columns) - masked
        sources = [self.facts.column_sources.get((*key, column), ()) for column in shown]
        read = set().union(*sources)
        return not masked.isdisjoint(read)

    @cached_property
    def _access(self) -> AccessCheck:
        """Closes what leads to a limited table, as the guard closes what leads to a denied one."""
        return AccessCheck(
            AccessRules(denied=self.limited),
            self.facts,
            lambda key: ".".join(key) in self.functions,
        )
