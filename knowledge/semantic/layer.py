"""Apply the semantic file of a running service to each catalogue that is read.

The file is read again when it has changed. Whatever is wrong in it, or does not fit the catalogue
(any more), is left out and logged; the rest is used. Expressions are proven by the guard, then
planned by PostgreSQL.
"""

import asyncio
import logging
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from common.errors import CituError
from common.meanings import Report
from common.values import Catalog, Table
from databases.catalog.catalog import Plan
from guard import Guard, ServerFacts
from knowledge.semantic.problems import Problem, SemanticFileError
from knowledge.semantic.semantic_binding import BoundSemanticFile, SemanticExpression, bind
from knowledge.semantic.semantic_format import read_file, read_text

_log = logging.getLogger(__name__)
# for all statements of one reading; those that are left are believed until the next one
_PLANNING_S = 5.0

_Shape = tuple[tuple[str, str], ...]  # names and types of a table's columns


class SemanticLayer:
    """Annotates catalogues with the file at `path`.

    Args:
        allowed_functions: functions that its expressions may call beyond PostgreSQL's own harmless
            ones.
        logs: whether problems are logged.

    Attributes:
        name: the file's, as messages call it.
        problems: what of the file is not used with the latest catalogue, and why; None before the
            first one.
        reports: those of the file, also those that can't be used with the latest catalogue.

    Raises:
        SemanticFileError: the file can't be read or is not valid.
    """

    def __init__(
        self, path: Path, *, allowed_functions: Collection[str] = (), logs: bool = True
    ) -> None:
        self.name = str(path)
        self.problems: tuple[Problem, ...] | None = None
        self._path = path
        self._logs = logs
        self._guard = Guard(allowed_functions=allowed_functions)
        self._stamp = file_stamp(path)
        self._file = read_file(path)
        # Mistakes of a file that can't be read any more; until it is mended, its last entries hold
        self._mistakes: tuple[Problem, ...] = ()
        self.reports = self._reports_of(())
        # statement → its table then, and why it failed
        self._planned: dict[str, tuple[_Shape, str | None]] = {}

    @property
    def file_name(self) -> str:
        """Return the name of the file without its folder."""
        return self._path.name

    def text(self) -> str:
        """Return the file as it is now.

        Raises:
            OSError: it can't be read.
        """
        return self._path.read_text("utf-8")

    def problems_in(self, text: str, catalog: Catalog) -> tuple[Problem, ...]:
        """Return the entries of another text of the file that don't fit the catalogue.

        Raises:
            SemanticFileError: it is no semantic file.
        """
        bound = bind(read_text(text.encode(), self.file_name), catalog)
        refused = []
        for statement in bound.statements:
            why = self._refusal(statement.sql)
            if why is not None:
                refused.append((statement, why))

        return bound.without(refused).problems

    async def annotate(self, catalog: Catalog, facts: ServerFacts, plan: Plan) -> Catalog:
        """Return `catalog` with the file's meanings; see `databases.catalog.catalog.Annotate`."""
        bound = await asyncio.to_thread(self._bind_catalog, catalog, facts)
        bound = bound.without(await self._failing(bound.statements, plan))
        broken = await self._broken_reports(plan)
        self.reports = self._reports_of(broken)
        self._report((*self._mistakes, *sorted((*bound.problems, *broken.values()))))
        return bound.catalog

    def _bind_catalog(self, catalog: Catalog, facts: ServerFacts) -> BoundSemanticFile:
        self._read_again()
        self._guard.learn(facts)
        bound = bind(self._file, catalog)
        allowed = []
        refused = []
        for statement in bound.statements:
            why = self._refusal(statement.sql)
            if why is None:
                allowed.append(statement)
            else:
                refused.append((statement, why))

        return replace(bound.without(refused), statements=tuple(allowed))

    def _read_again(self) -> None:
        stamp = file_stamp(self._path)
        if stamp == self._stamp:
            return

        self._stamp = stamp
        try:
            self._file = read_file(self._path)
        except SemanticFileError as error:
            self._mistakes = error.problems
            return

        self._mistakes = ()
        _log.info("the semantic file %s has changed and was read again", self.name)

    def _reports_of(self, broken: Collection[str]) -> tuple[Report, ...]:
        reports = []
        for entry in self._file.reports:
            name = entry.name.text
            is_broken = name in broken
            reports.append(
                Report(name, entry.sql.text, entry.names, entry.description, is_broken=is_broken)
            )

        return tuple(reports)

    async def _broken_reports(self, plan: Plan) -> dict[str, Problem]:
        """Return the reports that the guard refuses or PostgreSQL can't plan, by name.

        Those that it has no time to plan are believed until the next reading.
        """
        entries = self._file.reports
        refusals = await asyncio.to_thread(
            lambda: [self._refusal(entry.sql.text) for entry in entries]
        )
        until = time.monotonic() + _PLANNING_S
        broken = {}
        for entry, why in zip(entries, refusals, strict=True):
            if why is None and time.monotonic() < until:
                why = await plan(entry.sql.text)
            if why is not None:
                problem = f"the report {entry.name.text!r} can't be used: {why}"
                broken[entry.name.text] = Problem(entry.sql.line, problem)

        return broken

    def _refusal(self, sql: str) -> str | None:
        try:
            self._guard.check(sql)
        except CituError as error:
            return str(error).rstrip(".")

        return None

    async def _failing(
        self, statements: Collection[SemanticExpression], plan: Plan
    ) -> list[tuple[SemanticExpression, str]]:
        """Return statements that PostgreSQL can't plan, with its reasons.

        It is asked only for those that may have changed.
        """
        until = time.monotonic() + _PLANNING_S
        planned: dict[str, tuple[_Shape, str | None]] = {}
        for each in statements:
            shape = _shape(each.table)
            plan_before = self._planned.get(each.sql)
            if plan_before is not None and plan_before[0] == shape:
                planned[each.sql] = plan_before
            elif time.monotonic() < until:
                planned[each.sql] = (shape, await plan(each.sql))

        self._planned = planned
        failing = []
        for each in statements:
            _, why = planned.get(each.sql, ((), None))
            if why is not None:
                failing.append((each, why))

        return failing

    def _report(self, problems: tuple[Problem, ...]) -> None:
        if problems == self.problems:
            return

        self.problems = problems
        if self._logs:
            for problem in problems:
                _log.warning("%s", problem.at(self.name))


def _shape(table: Table) -> _Shape:
    return tuple((column.name, column.type) for column in table.columns)


def file_stamp(path: Path) -> tuple[int, int] | None:
    """Return the time and size of the file, to see whether it has changed; None when it can't be
    read.
    """
    try:
        status = path.stat()
    except OSError:
        return None

    return status.st_mtime_ns, status.st_size
