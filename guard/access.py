"""Applies the operator's rules: what statements may read, beyond what the role's privileges allow.

A closed column must not leak in any way that SQL has to name it: those that `guard.columns` lists,
parent and child tables, generated columns and views.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain, filterfalse

from common.errors import ForbiddenObject, StatementRejected
from guard import refusal_texts as texts
from guard.columns import ColumnCheck, Read, missing
from guard.facts import Key, Name, ServerFacts, qualifier_of
from guard.functions import probed_types, reads_unseen
from guard.name_encoding import NameEncodingRule
from guard.refusal_texts import refusal_of_object
from guard.rules import AccessRules
from guard.walk import Findings, walk
from sqltree.parsing import parse


class AccessCheck(ColumnCheck):
    """Judges relations, columns and statements' findings by the rules and the server's relations.

    Args:
        is_vouched: tells whether the operator allows the function of that schema and name.
    """

    def __init__(
        self,
        rules: AccessRules,
        facts: ServerFacts,
        is_vouched: Callable[[Key], bool] = lambda _: False,
    ) -> None:
        super().__init__(facts)
        self.rules = rules
        self._is_vouched = is_vouched
        self._verdicts: dict[Read, ForbiddenObject | None] = {}
        self._secrets: dict[Read, bool] = {}
        self._families: dict[Read, frozenset[Key]] = {}
        self._views: dict[Key, bool] = {}

    # --------------------------------------------------------------------------
    # relations and their columns

    def refusal(self, read: Read) -> ForbiddenObject | None:
        """Return why nothing of the relation may be read, or None."""
        if (
            read.key not in self.facts.relations
        ):  # names that don't exist are not remembered: a user could make up any number
            return self._judge(read)
        if read not in self._verdicts:
            self._verdicts[read] = self._judge(read)

        return self._verdicts[read]

    def _closed_table(self, key: Key) -> ForbiddenObject:
        if self.rules.are_files:
            return refusal_of_object(key[1], texts.NO_FILE_TABLE)

        return refusal_of_object(_dotted(key), texts.DENIED_TABLE)

    def _judge(self, read: Read) -> ForbiddenObject | None:
        key = read.key
        name = _dotted(key)
        parents = self.facts.parents.get(key, ())
        is_denied = any(map(self.rules.denies, parents))
        if is_denied or not self.rules.may_read(key):
            return self._closed_table(key)
        if self._is_closed_view(key):
            return refusal_of_object(name, texts.CLOSED_VIEW)

        family = self._family(read)
        has_denied_part = any(map(self.rules.denies, family))
        if has_denied_part:
            return refusal_of_object(name, texts.CLOSED_PARTS)

        return None

    def may_read_column(self, read: Read, column: str) -> bool:
        """Tell whether that column of a readable relation may be read."""
        family = self._family(read)
        names = [(*relative, column) for relative in family]
        # What the operator opened by name is open whatever it is made of, as with views.
        followed = filterfalse(self.rules.names, names)
        sources = [self.facts.column_sources.get(name, ()) for name in followed]
        read_columns = {column}.union(*sources)
        return all(self._is_open(read.key, each, family) for each in read_columns)

    def _is_open(self, key: Key, column: str, family: frozenset[Key]) -> bool:
        """Tell whether the rules open the column, and deny it in no relation of the family."""
        if not self.rules.may_read_column(key, column):
            return False

        relatives = family - {key}
        names = [(*relative, column) for relative in relatives]
        is_denied = any(map(self.rules.denies, names))
        return not is_denied

    def has_secrets(self, read: Read) -> bool:
        """Tell whether there are columns of the readable relation that may not be read."""
        if read.key not in self.facts.relations:
            return self._find_secrets(read)
        if read not in self._secrets:
            self._secrets[read] = self._find_secrets(read)

        return self._secrets[read]

    def _find_secrets(self, read: Read) -> bool:
        family = self._family(read)
        if not any(map(self.rules.has_secrets, family)):
            return False

        columns = self.columns_of(read.key)
        if not columns:
            return True

        readable = [self.may_read_column(read, column) for column in columns]
        return not all(readable)

    def _family(self, read: Read) -> frozenset[Key]:
        """Return the relation and its parents, and with its children, these and their parents."""
        family = self._families.get(read)
        if family is not None:
            return family

        members = {read.key}
        if not read.is_alone:
            members.update(self._children.get(read.key, ()))

        parents = [self.facts.parents.get(key, ()) for key in members]
        family = frozenset(members).union(*parents)
        if read.key in self.facts.relations:
            self._families[read] = family

        return family

    @cached_property
    def _children(self) -> dict[Key, set[Key]]:
        children: defaultdict[Key, set[Key]] = defaultdict(set)
        for child, parents in self.facts.parents.items():
            for parent in parents:
                children[parent].add(child)

        return children

    def _is_closed_view(self, key: Key) -> bool:
        """Tell whether the view's own query would be refused; false for tables.

        A view that the operator allows by its full name is open whatever it reads: it was opened on
        purpose.
        """
        definition = self.facts.view_definitions.get(key)
        if definition is None:
            return False
        if self.rules.names(key):
            return False
        if key not in self._views:
            self._views[key] = True  # until it is known: a view may lead back to itself
            self._views[key] = not self._may_follow(key, definition)

        return self._views[key]

    def _may_follow(self, key: Key, definition: str) -> bool:
        """Tell whether the definition, and the functions behind it, read nothing that is closed."""
        functions = self.facts.read_functions.get(key, ())
        if not all(map(self._is_vouched, functions)):
            return False

        check = self
        if self.rules.names_columns(key):
            check = self._by_denials

        try:
            (statement,) = parse(definition)
            findings = walk(statement.kind, statement.node)
            is_unseen = any(reads_unseen(call, self.facts) for call in findings.calls)
            if is_unseen:
                return False

            refusals = chain(self._readings.refusals(findings), check.refusals(findings))
            first = next(refusals, None)
            return first is None
        except (
            StatementRejected,
            ValueError,
            RecursionError,
        ):  # a view that can't be followed stays closed
            return False

    @cached_property
    def _readings(self) -> NameEncodingRule:
        return NameEncodingRule(self.facts)

    @cached_property
    def _by_denials(self) -> "AccessCheck":
        """Judges views of which columns are opened by name: what these read need not be allowed,
        only not denied.
        """
        return AccessCheck(self.rules.without_allowed(), self.facts, self._is_vouched)

    # --------------------------------------------------------------------------
    # statements

    def refusals(self, findings: Findings) -> Iterator[StatementRejected]:
        """Yield every refusal; those of relations that do not exist come last."""
        if not self.rules:
            return

        blocks = self.blocks(findings)
        tables = chain.from_iterable(block.tables for block in blocks)
        reads = {read for _, read in tables}
        yield from filter(None, map(self.refusal, sorted(reads)))
        yield from self._type_refusals(findings)
        yield from self.column_refusals(findings, blocks)
        unknown = [block.unknown for block in blocks]
        for relation, place in chain.from_iterable(unknown):
            yield missing(relation, place)

    def closed_column(self, read: Read, column: str) -> ForbiddenObject:
        return refusal_of_object(_dotted((*read.key, column)), texts.DENIED_COLUMN)

    def closed_row(self, read: Read) -> ForbiddenObject:
        return refusal_of_object(_dotted(read.key), texts.WHOLE_ROW)

    def _type_refusals(self, findings: Findings) -> Iterator[ForbiddenObject]:
        """Yield refusals of row types, which show the columns of their tables.

        `json_populate_record(NULL::t, '{}')` is one.
        """
        for name in findings.types:
            schema = qualifier_of(name)
            yield from self._row_type_refusals(schema, name[-1])

        probed = map(probed_types, findings.calls)
        for word in chain.from_iterable(probed):
            yield from self._row_type_refusals(None, word)

    def _row_type_refusals(self, schema: str | None, name: str) -> Iterator[ForbiddenObject]:
        candidates = {name, name.lstrip("_")}  # `_t` is another way to write `t[]`
        if schema is None:
            candidates -= self.facts.types

        keys = {self.facts.key(schema, candidate) for candidate in candidates}
        for key in keys & self.facts.relations:
            read = Read(key)
            is_closed = self.refusal(read) or self.has_secrets(read)
            if is_closed:
                yield refusal_of_object(_dotted(key), texts.ROW_TYPE)

    def idle_denials(self) -> Iterator[Name]:
        """Yield denials that cover nothing: misspelt, or in another case than the name."""
        if not self.facts.is_complete:
            return

        relations = (*self.facts.relations, *self.facts.extension_relations)
        column_names = [(name,) for name in self.facts.column_names]
        for rule in self.rules.denied:
            relation_rule = AccessRules(denied=[rule[:2]])
            column_rule = AccessRules(denied=[rule[2:] or ("*",)])
            has_relation = any(map(relation_rule.denies, relations))
            has_column = any(map(column_rule.denies, column_names))
            is_idle = not has_relation or not has_column
            if is_idle:
                yield rule


def _dotted(name: Name) -> str:
    return ".".join(name)
