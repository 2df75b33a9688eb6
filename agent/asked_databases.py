"""The databases that may be asked: the one of `DATABASE_URL`, or those of `DATABASES_FILE`.

The file is read again while the service runs. What is wrong in it then is logged, and the databases
stay as they were until it is mended.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from common.actor import Actor
from common.audit import Occasion
from common.meanings import BilingualNames, Report
from common.ports import Database
from common.text import Lang, Text
from databases.databases_file import DatabaseEntry, DatabasesFile, DatabasesFileError
from databases.datasources import Datasource, Datasources
from guard.row_rules import RowRulesError
from knowledge.semantic.layer import SemanticLayer, file_stamp
from knowledge.semantic.problems import SemanticFileError

_log = logging.getLogger(__name__)
_LOOK_S = 1.0  # between two looks whether the file has changed


@dataclass(frozen=True)
class AskedDatabase:
    """A database that may be asked.

    Attributes:
        names, description: what its operator calls it, and says of it.
        meanings: its semantic file, if it has one.
        entry: the entry of the file that it comes from; None: there is no file.
    """

    name: str
    datasource: Datasource
    meanings: SemanticLayer | None = None
    names: BilingualNames = field(default_factory=BilingualNames)
    description: Text | None = None
    is_demo: bool = False
    entry: DatabaseEntry | None = None

    @property
    def reports(self) -> Sequence[Report]:
        """Return the fixed reports of its semantic file."""
        if self.meanings is not None:
            return self.meanings.reports

        return ()

    def label(self, lang: Lang) -> str:
        """Return what people call it."""
        return self.names.label(lang) or self.name


class BroughtFiles(Protocol):
    """Tells whether anybody has brought files."""

    def are_there(self) -> bool:
        """Tell whether anybody has; doesn't wait for a database that is away."""

    def were_there(self) -> bool:
        """Tell whether anybody ever has, though the files may be gone."""


Make = Callable[[DatabaseEntry], AskedDatabase]
"""Makes a database of its entry.

Raises `SemanticFileError` or `RowRulesError` when one of its files can't be used.
"""


class DatabasesOnFile:
    """The file of databases: reads it again when it has changed.

    Args:
        path: the path of the file.
        read: reads it; raises `DatabasesFileError`.
        make: makes the databases of new and changed entries.

    Attributes:
        databases: by name, in the file's order.
        default: the name of the one for questions that name none.
        has_mistakes: whether the file as it is now can't be used.

    Raises:
        DatabasesFileError, SemanticFileError, RowRulesError: a file can't be used.
    """

    def __init__(self, path: Path, read: Callable[[Path], DatabasesFile], make: Make) -> None:
        self._path = path
        self._read = read
        self._make = make
        self._stamp = file_stamp(path)
        self.has_mistakes = False
        self.databases: Mapping[str, AskedDatabase] = {}
        self.default = ""
        self._apply_file()

    def has_changed(self) -> bool:
        """Read the file again if it is another one than before; tell whether databases changed."""
        stamp = file_stamp(self._path)
        if stamp == self._stamp:
            return False

        self._stamp = stamp
        before = (self.databases, self.default)
        try:
            self._apply_file()
        except (DatabasesFileError, SemanticFileError, RowRulesError) as error:
            self.has_mistakes = True
            _log.error("the file of databases is not used as it is now: %s", error)
            return False

        self.has_mistakes = False
        _log.info("the file of databases %s has changed and was read again", self._path)
        return (self.databases, self.default) != before

    def _apply_file(self) -> None:
        file = self._read(self._path)
        databases = {}
        for entry in file.entries:
            asked_database = self.databases.get(entry.name)
            if asked_database is None or asked_database.entry != entry:
                asked_database = self._make(entry)

            databases[entry.name] = asked_database

        self.databases = databases
        self.default = file.default


class AskedDatabases:
    """The databases that may be asked, by name, and the way to each.

    Args:
        only: the database of a service without a file.
        on_file: the file; one of both is given.
        datasources: opens them; it is told of every change of the file.
        workspace: the database of people's files; it is there while anybody has brought some.
        files: tells so.
    """

    def __init__(
        self,
        datasources: Datasources,
        *,
        only: AskedDatabase | None = None,
        on_file: DatabasesOnFile | None = None,
        workspace: AskedDatabase | None = None,
        files: BroughtFiles | None = None,
    ) -> None:
        self.datasources = datasources
        self._workspace = workspace
        self._files = files
        self._on_file = on_file
        self._databases: Mapping[str, AskedDatabase] = {}
        self._default = ""
        if only is not None:
            self._databases = {only.name: only}
            self._default = only.name

        self._looked_at = time.monotonic()
        self._apply_file()

    def _apply_file(self) -> None:
        if self._on_file is not None:
            self._databases = self._on_file.databases
            self._default = self._on_file.default

        datasources = {name: one.datasource for name, one in self._databases.items()}
        if self._workspace is not None:
            datasources[self._workspace.name] = self._workspace.datasource

        self.datasources.replace(datasources)

    def _look(self) -> None:
        """Read the file again when it has changed since the last look."""
        now = time.monotonic()
        if self._on_file is None or now - self._looked_at < _LOOK_S:
            return

        self._looked_at = now
        if self._on_file.has_changed():
            self._apply_file()

    @property
    def is_one(self) -> bool:
        """Tell whether the operator has set up but one, without a file that could add others."""
        return self._on_file is None

    def is_one_for(self, actor: Actor) -> bool:
        """Tell whether there is but one for an actor, who has brought no files."""
        return self.is_one and len(self.open_to(actor)) < 2

    @property
    def had_files(self) -> bool:
        """Tell whether people's files are asked here, or were."""
        return self._workspace is not None and self._files is not None and self._files.were_there()

    @property
    def has_mistakes(self) -> bool:
        """Tell whether the file as it is now can't be used."""
        return self._on_file is not None and self._on_file.has_mistakes

    @property
    def default(self) -> str:
        """Return the name of the database for questions that name none."""
        self._look()
        return self._default

    def all(self) -> tuple[AskedDatabase, ...]:
        """Return all databases, whoever may ask them."""
        self._look()
        databases = tuple(self._databases.values())
        if self._workspace is None or self._files is None or not self._files.are_there():
            return databases

        return (*databases, self._workspace)

    def of(self, name: str | None) -> AskedDatabase | None:
        """Return the database, whoever may ask it; None: there is none of that name.

        Args:
            name: None: the default one.
        """
        self._look()
        if self._workspace is not None and name == self._workspace.name:
            return self._workspace

        return self._databases.get(name or self._default)

    def open_to(self, actor: Actor) -> tuple[AskedDatabase, ...]:
        """Return the databases that the actor may ask."""
        return tuple(one for one in self.all() if one.datasource.is_open_to(actor))

    def database(self, name: str | None, actor: Actor) -> Database:
        """Open a database with the actor's rights, unaudited, for its catalogue and for judging.

        Raises:
            NotFound: there is none of that name for the actor.
        """
        return self.datasources.open(name or self.default, actor)

    def audited(self, occasion: Occasion) -> Database:
        """Open the database of an occasion; its statements are audited.

        Raises:
            NotFound: there is none of that name for the actor.
        """
        name = occasion.database or self.default
        return self.datasources.open(name, occasion.actor, replace(occasion, database=name))
