"""The operator's file of databases: YAML, read strictly, with the line of every mistake.

Each database has a name, a URL and whatever differs from the settings of the service: who may ask
it, what may be read, limits. `${NAME}` in a text stands for an environment variable, so that the
file holds no password.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from common.meanings import BilingualNames
from common.text import Text, language_of
from common.yaml_tree import (
    Tree,
    UnreadableYaml,
    YamlFields,
    YamlItems,
    line_of,
    read_file_bytes,
    read_tree,
)
from databases.options import DatabaseOptions
from databases.other_engines import other_engine
from databases.source import is_address
from guard import AccessRuleError

DEMO_URL = "demo"
"""Stands for the embedded demo database in place of a URL."""

_NAME = r"[A-Za-z0-9_-]{1,63}"
_GROUP = r"[\w.:-]{1,64}"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SHOWN = 20  # mistakes that one message lists
_MOST_DATABASES = 200

_Mistake = tuple[int, str]


class DatabasesFileError(ValueError):
    """The file can't be used; the message has a line `file:line: what` for each mistake."""


@dataclass(frozen=True)
class DatabaseEntry:
    """One database of the file.

    Attributes:
        name: as requests give it.
        url: the URL of a PostgreSQL database, or `DEMO_URL`.
        names: what people call it.
        description: what it is about.
        groups: those of API keys that may ask it; None: every caller.
        options: the settings of the service, with what the entry says otherwise.
        semantic_file, row_rules: absolute paths; None: it has none.
    """

    name: str
    url: str
    names: BilingualNames
    description: Text | None
    groups: frozenset[str] | None
    options: DatabaseOptions
    semantic_file: Path | None
    row_rules: Path | None

    @property
    def is_demo(self) -> bool:
        """Tell whether it is the embedded demo database."""
        return self.url == DEMO_URL


@dataclass(frozen=True)
class DatabasesFile:
    """The databases of a file, in its order.

    Attributes:
        default: the database of questions that name none and fit none better; the one that the
            file calls `default`, else the first.
    """

    entries: tuple[DatabaseEntry, ...]
    default: str


def _listed(value: object) -> object:
    """Take a single text for a list of one."""
    return [value] if isinstance(value, str) else value


_Texts = Annotated[list[str], BeforeValidator(_listed)]
_Group = Annotated[str, Field(pattern=rf"^{_GROUP}$")]
_Positive = Annotated[int, Field(gt=0)]
_Count = Annotated[int, Field(ge=0)]
_Seconds = Annotated[float, Field(gt=0, le=86_400)]


class _ByLanguage(BaseModel):
    model_config = ConfigDict(extra="forbid")

    zh: _Texts = Field(default_factory=list)
    en: _Texts = Field(default_factory=list)


class _TextByLanguage(BaseModel):
    model_config = ConfigDict(extra="forbid")

    zh: str = ""
    en: str = ""


class _Fields(BaseModel):
    """The fields of one database. Those with names of `DatabaseOptions` replace the settings'."""

    model_config = ConfigDict(extra="forbid")

    url: str = Field(min_length=1)
    names: _ByLanguage | _Texts | None = None
    description: _TextByLanguage | str | None = None
    default: bool = False
    groups: Annotated[list[_Group], BeforeValidator(_listed)] | None = None
    semantic_file: str | None = None
    row_rules: str | None = None
    allowed_objects: _Texts | None = None
    denied_objects: _Texts | None = None
    group_denied_objects: dict[_Group, _Texts] | None = None
    allowed_functions: _Texts | None = None
    row_context: bool | None = None
    require_read_only_role: bool | None = None
    pool_size: _Positive | None = None
    pool_wait_s: _Seconds | None = None
    statement_timeout_s: _Seconds | None = None
    catalog_ttl_s: _Seconds | None = None
    max_rows: _Positive | None = None
    max_result_bytes: _Positive | None = None
    max_plan_cost: _Count | None = None
    max_plan_rows: _Count | None = None


_OPTIONS = tuple(_Fields.model_fields.keys() & DatabaseOptions.__dataclass_fields__.keys())


def read_databases(
    path: Path, options: DatabaseOptions, environ: Mapping[str, str] | None = None
) -> DatabasesFile:
    """Read the file at `path`.

    Args:
        options: the settings of the service, for what an entry does not say.
        environ: gives the variables; default: the process environment.

    Raises:
        DatabasesFileError: it can't be read or is not valid; names every mistake with its line.
    """
    try:
        tree = read_tree(read_file_bytes(path))
    except UnreadableYaml as error:
        raise DatabasesFileError(f"{path}:{error.line}: {error.text}") from error

    reading = _Reading(path, options, os.environ if environ is None else environ)
    databases_file = reading.file(tree)
    if reading.mistakes or databases_file is None:
        raise DatabasesFileError("\n".join(_mistake_lines(path, reading.mistakes)))

    return databases_file


def _mistake_lines(path: Path, mistakes: Sequence[_Mistake]) -> Iterator[str]:
    for line, text in sorted(mistakes)[:_SHOWN]:
        yield f"{path}:{line}: {text}"

    if len(mistakes) > _SHOWN:
        yield f"… and {len(mistakes) - _SHOWN} more"


class _Reading:
    """Reads a tree and collects its mistakes."""

    def __init__(self, path: Path, options: DatabaseOptions, environ: Mapping[str, str]) -> None:
        self._folder = path.absolute().parent
        self._options = options
        self._environ = environ
        self.mistakes: list[_Mistake] = []

    def file(self, tree: Tree) -> DatabasesFile | None:
        databases = self._databases(tree)
        entries = []
        defaults = []
        for name, node in databases.nodes.items():
            line = databases.keys[name]
            fields = self._fields(name, node, line)
            if fields is None:
                continue

            entry = self._entry(name, fields, node, line)
            if entry is not None:
                entries.append(entry)
            if fields.default:
                defaults.append(name)

        if len(defaults) > 1:
            self._wrong(databases.line, f"only one can be the default: {', '.join(defaults)}")
        if self.mistakes:
            return None

        default = defaults[0] if defaults else entries[0].name
        return DatabasesFile(tuple(entries), default)

    def _databases(self, tree: Tree) -> YamlFields:
        """Return the mapping of databases; an empty one where there is none."""
        node = tree.nodes.get("databases") if isinstance(tree, YamlFields) else None
        if not isinstance(node, YamlFields) or not node.nodes:
            self._wrong(tree.line, "the file needs 'databases': a mapping of names to databases")
            return YamlFields(tree.line)

        assert isinstance(tree, YamlFields)
        for key, line in tree.keys.items():
            if key not in ("databases", "version"):
                self._wrong(line, f"the file has no key {key!r}: it has 'databases'")

        if len(node.nodes) > _MOST_DATABASES:
            self._wrong(node.line, f"more than {_MOST_DATABASES} databases")

        return node

    def _fields(self, name: str, node: Tree, line: int) -> _Fields | None:
        if not re.fullmatch(_NAME, name):
            self._wrong(line, f"{name!r} is no name: up to 63 letters, digits, - and _")
            return None

        if not isinstance(node, YamlFields):
            self._wrong(line, f"{name} needs a mapping with 'url'")
            return None

        mistakes_before = len(self.mistakes)
        values = self._with_variables(node)
        if len(self.mistakes) > mistakes_before:
            return None

        try:
            return _Fields.model_validate(values)
        except ValidationError as error:
            for entry in error.errors(include_url=False, include_input=False):
                place = ".".join(map(str, entry["loc"]))
                self._wrong(line_of(node, entry["loc"], line), f"{name}.{place}: {entry['msg']}")

            return None

    def _with_variables(self, node: Tree) -> Any:
        """Return the node as JSON values, with the environment's values for variables."""
        if isinstance(node, YamlFields):
            return {key: self._with_variables(one) for key, one in node.nodes.items()}
        if isinstance(node, YamlItems):
            return [self._with_variables(one) for one in node.nodes]
        if isinstance(node.value, str):
            return _VARIABLE.sub(lambda match: self._variable(match[1], node.line), node.value)

        return node.value

    def _variable(self, name: str, line: int) -> str:
        value = self._environ.get(name)
        if value is None:
            self._wrong(line, f"the environment has no variable {name}")
            return ""

        return value

    def _entry(self, name: str, fields: _Fields, node: Tree, line: int) -> DatabaseEntry | None:
        if fields.url != DEMO_URL and not is_address(fields.url):
            url_line = line_of(node, ("url",), line)
            example = "postgresql://user:password@localhost:5432/database"
            problem = f"{name}.url is not a URL such as {example}, nor {DEMO_URL!r}"
            advice = other_engine(fields.url)
            if advice is not None:
                problem = f"{name}.url can't be used. {advice.en}"

            self._wrong(url_line, problem)
            return None

        own_options = fields.model_dump(include=set(_OPTIONS), exclude_none=True)
        options = replace(self._options, **own_options)
        try:
            options.guard()
            _ = options.group_denials  # the property reads the rules
        except AccessRuleError as error:
            self._wrong(line, f"{name}: {error}")
            return None

        return DatabaseEntry(
            name=name,
            url=fields.url,
            names=_names(fields.names),
            description=_description(fields.description),
            groups=None if fields.groups is None else frozenset(fields.groups),
            options=options,
            semantic_file=self._path(fields.semantic_file),
            row_rules=self._path(fields.row_rules),
        )

    def _path(self, text: str | None) -> Path | None:
        """Return the path; a relative one begins in the folder of the file."""
        if text is None:
            return None

        return self._folder / Path(text).expanduser()

    def _wrong(self, line: int, text: str) -> None:
        self.mistakes.append((line, text))


def _names(names: _ByLanguage | list[str] | None) -> BilingualNames:
    if names is None:
        return BilingualNames()
    if isinstance(names, _ByLanguage):
        return BilingualNames(tuple(names.zh), tuple(names.en))

    chinese = tuple(name for name in names if language_of(name) == "zh")
    return BilingualNames(chinese, tuple(name for name in names if name not in chinese))


def _description(description: _TextByLanguage | str | None) -> Text | None:
    """Return the text in both languages; one that is given in one stands for the other, too."""
    if description is None:
        return None
    if isinstance(description, str):
        return Text(description, description)

    return Text(description.zh or description.en, description.en or description.zh)
