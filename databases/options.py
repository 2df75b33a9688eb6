"""How one database is asked: connections, limits, and what may be read and called."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from databases.row_view import Place
from guard import AccessRules, Guard, check_function_rule, parse_rule
from guard.facts import Key, Name
from guard.row_rules import OPEN, ActorRows, RowRules

# A group, whose name may hold colons, and what follows the colon after it.
_ENTRY = re.compile(r"\A\s*+([\w.:-]{1,64}?)\s*:(?:\s+|(?=[^:]*$))(.*)", re.DOTALL)


@dataclass(frozen=True)
class DatabaseRights:
    """The denials and row rules of an actor, beyond what the operator closes to everybody.

    Whatever is remembered of a judgement (verdicts, the visible catalogue) is kept by this value:
    actors with equal rights share it, others never do. None of it depends on the values by which
    rows are told apart, such as the user id; whatever does, or holds rows, is kept by
    `Database.rows_seen` or not at all.

    Attributes:
        denied: schemas, tables and columns that may not be read, beyond
            `DatabaseOptions.denied_objects`.
        ruled, masked: tables and columns of which row rules may hide something.
    """

    denied: frozenset[Name] = frozenset()
    ruled: frozenset[Key] = frozenset()
    masked: frozenset[Place] = frozenset()

    @classmethod
    def of(cls, denied: frozenset[Name], rows: ActorRows = OPEN) -> "DatabaseRights":
        """Return the rights of an actor for whom `denied` is closed, and who sees `rows`."""
        return cls(denied, rows.ruled, rows.masked)

    @property
    def hides_rows(self) -> bool:
        """Tell whether row rules may hide anything."""
        return bool(self.ruled or self.masked)


EVERYBODY = DatabaseRights()
"""The rights of actors for whom nothing else is said."""


@dataclass(frozen=True)
class DatabaseOptions:
    """All that an operator can set for one database.

    Attributes:
        pool_size: most connections, shared by all actors.
        pool_wait_s: seconds to wait for a free one.
        caller_share: the part of them that one caller may hold.
        statement_timeout_s: seconds one statement may run.
        max_rows, max_result_bytes: most rows of one result, and most bytes of its values, as text.
        max_plan_cost, max_plan_rows: most a plan may be estimated to cost, in the planner's units,
            and rows it may be estimated to return; 0: no limit.
        catalog_ttl_s: seconds the table descriptions are kept.
        allowed_objects: if any, only these may be read: `schema`, `schema.table` or
            `schema.table.column`, with `*`.
        denied_objects: these may not be read, written the same way.
        group_denied_objects: the same for actors of a group, by its name; all groups of an actor
            count.
        allowed_functions: user-defined and extension functions that may be called (`schema.name`,
            `schema.*`, `name`).
        forbidden_check: when false, the guard judges only structure: one statement, and nothing but
            a query.
        row_context: tell the server's policies on whose behalf each transaction runs.
        row_rules: which rows and values groups may see; None: all of them.
        require_read_only_role: run nothing (`DatabaseUnavailable`) for a role that may do more than
            read.
        is_workspace: its role is meant to own the tables, so its rights are no reason to warn; the
            log would name the tables of people's files.
    """

    pool_size: int = 8
    pool_wait_s: float = 30.0
    caller_share: float = 0.5
    statement_timeout_s: float = 30.0
    max_rows: int = 200
    max_result_bytes: int = 4 * 1024 * 1024
    max_plan_cost: int = 0
    max_plan_rows: int = 0
    catalog_ttl_s: float = 300.0
    allowed_objects: Collection[str] = ()
    denied_objects: Collection[str] = ()
    group_denied_objects: Mapping[str, Collection[str]] = field(default_factory=dict)
    allowed_functions: Collection[str] = ()
    forbidden_check: bool = True
    row_context: bool = False
    row_rules: RowRules | None = None
    require_read_only_role: bool = False
    is_workspace: bool = False

    @property
    def group_denials(self) -> Mapping[str, frozenset[Name]]:
        """Return `group_denied_objects` as rules.

        Raises:
            AccessRuleError: one of the objects is not written as a rule.
        """
        return {
            group: frozenset(_rules(objects))
            for group, objects in self.group_denied_objects.items()
        }

    def guard(self, rights: DatabaseRights = EVERYBODY) -> Guard:
        """Return a new guard for statements of actors with these rights.

        Raises:
            AccessRuleError: one of the objects or functions is not written as a rule.
        """
        for function in self.allowed_functions:
            check_function_rule(function)

        denied = (*_rules(self.denied_objects), *sorted(rights.denied))
        # A statement that calls whatever it likes could set what policies are told, or read a table
        # unseen.
        limits_rows = self.row_context or self.row_rules is not None
        return Guard(
            allowed_functions=self.allowed_functions,
            access=AccessRules(_rules(self.allowed_objects), denied, self.is_workspace),
            forbidden_check=self.forbidden_check or limits_rows,
        )


class DatabaseSettings(Protocol):
    """The settings of the datasource; `app_config.Settings` has them."""

    @property
    def database_pool_size(self) -> int: ...  # noqa: D102 - app_config says what each is
    @property
    def database_pool_wait_s(self) -> float: ...  # noqa: D102
    @property
    def caller_share(self) -> float: ...  # noqa: D102
    @property
    def statement_timeout_s(self) -> float: ...  # noqa: D102
    @property
    def max_rows(self) -> int: ...  # noqa: D102
    @property
    def max_result_bytes(self) -> int: ...  # noqa: D102
    @property
    def max_plan_cost(self) -> int: ...  # noqa: D102
    @property
    def max_plan_rows(self) -> int: ...  # noqa: D102
    @property
    def catalog_ttl_s(self) -> float: ...  # noqa: D102
    @property
    def allowed_objects(self) -> str: ...  # noqa: D102
    @property
    def denied_objects(self) -> str: ...  # noqa: D102
    @property
    def allowed_functions(self) -> str: ...  # noqa: D102
    @property
    def enable_forbidden_check(self) -> bool: ...  # noqa: D102
    @property
    def group_denied_objects(self) -> str: ...  # noqa: D102
    @property
    def row_context(self) -> bool: ...  # noqa: D102
    @property
    def require_read_only_role(self) -> bool: ...  # noqa: D102


def database_options(settings: DatabaseSettings) -> DatabaseOptions:
    """Return the options of the datasource, from the settings; without row rules, which are
    read from a file.
    """
    return DatabaseOptions(
        pool_size=settings.database_pool_size,
        pool_wait_s=settings.database_pool_wait_s,
        caller_share=settings.caller_share,
        statement_timeout_s=settings.statement_timeout_s,
        max_rows=settings.max_rows,
        max_result_bytes=settings.max_result_bytes,
        catalog_ttl_s=settings.catalog_ttl_s,
        forbidden_check=settings.enable_forbidden_check,
        allowed_functions=comma_separated(settings.allowed_functions),
        allowed_objects=comma_separated(settings.allowed_objects),
        denied_objects=comma_separated(settings.denied_objects),
        group_denied_objects=by_group(settings.group_denied_objects),
        row_context=settings.row_context,
        require_read_only_role=settings.require_read_only_role,
        max_plan_cost=settings.max_plan_cost,
        max_plan_rows=settings.max_plan_rows,
    )


def comma_separated(text: str) -> tuple[str, ...]:
    """Return the parts of a setting that are separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    return tuple(filter(None, parts))


def by_group(text: str) -> Mapping[str, tuple[str, ...]]:
    """Return the parts of a setting such as `clerks: hr, public.person.salary; guests:
    public.visitor`, by group.
    """
    names_by_group: defaultdict[str, list[str]] = defaultdict(list)
    for entry in map(_ENTRY.fullmatch, text.split(";")):
        if entry is not None:
            names_by_group[entry[1]] += comma_separated(entry[2])

    return {group: tuple(objects) for group, objects in names_by_group.items()}


def _rules(objects: Collection[str]) -> tuple[Name, ...]:
    return tuple(map(parse_rule, objects))
