"""Where things of a draft stand: files, views of the sources, names in dbt."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from etl.planning.draft_model import Draft, DraftModel
from etl.planning.draft_names import UniqueNames, ascii_name
from etl.planning.draft_test import DraftTest
from etl.rendering.jinja_text import jinja_string
from etl.rendering.select_rendering import identifier_text
from etl.rendering.shared_texts import SharedTexts

SOURCES_FILE = "sql/000_sources.sql"
BUILD_FILE = "sql/build.sql"
_NUMBERS_APART = 10


@dataclass(frozen=True)
class SourceTable:
    """A table of the datasource as the files name it.

    Attributes:
        view: in plain SQL; `group` and `key` are its source and table in dbt.
        columns: those that models read.
    """

    schema: str
    name: str
    view: str
    group: str
    key: str
    columns: tuple[str, ...]


class Layout:
    """The places of a draft's parts.

    Attributes:
        texts: the texts that stand in several of its files.
    """

    def __init__(self, draft: Draft) -> None:
        self.texts = SharedTexts()
        self._draft = draft
        self._sources = _source_tables(draft)
        self._models = {model.name: model for model in draft.models}
        self._numbers = {
            name: place * _NUMBERS_APART for place, name in enumerate(self._models, start=1)
        }

    @property
    def project(self) -> str:
        """Return the name of the dbt project and its profile."""
        return f"etl_{self._draft.target.name}"

    @property
    def sources(self) -> list[SourceTable]:
        """Return the tables of the datasource, each once."""
        return list(self._sources.values())

    def source(self, schema: str, name: str) -> SourceTable:
        """Return a table of the datasource."""
        return self._sources[schema, name]

    # --------------------------------------------------------------------------
    # what stands for a table in SQL

    def sql_name(self, table: exp.Table) -> str:
        """Return the view of a source or the relation of a model, for plain SQL."""
        if table.db:
            return identifier_text(self.source(table.db, table.name).view)

        return identifier_text(self._models[table.name].relation)

    def plain_place(self, model: DraftModel) -> str:
        """Return a model's relation for a FROM; its columns go on by the model's name."""
        relation = identifier_text(model.relation)
        own = identifier_text(model.name)
        if relation == own:
            return relation

        return f"{relation} AS {own}"

    def dbt_name(self, table: exp.Table) -> str:
        """Return the call by which dbt names a source or a model."""
        if table.db:
            source = self.source(table.db, table.name)
            return f"{{{{ source({jinja_string(source.group)}, {jinja_string(source.key)}) }}}}"

        return f"{{{{ ref({jinja_string(table.name)}) }}}}"

    def dbt_name_in(self, model: DraftModel) -> "_NamingInModel":
        """Return the same for a model's own text, in which it is `this`."""
        return _NamingInModel(self, model.name)

    def schema_variables(self, schemas: Mapping[str, str]) -> dict[str, str]:
        """Return dbt's variables that put other schemas in the place of the datasource's."""
        variables = {}
        for source in self.sources:
            if source.schema in schemas:
                variables[schema_variable(source.group)] = schemas[source.schema]

        return variables

    # --------------------------------------------------------------------------
    # files

    def dbt_model(self, model: DraftModel) -> str:
        """Return the path of a model's file."""
        return f"models/{model.node.layer.lower()}/{model.name}.sql"

    def plain_model(self, model: DraftModel) -> str:
        """Return the path of a model's file in plain SQL."""
        return f"sql/{self._numbers[model.name]:03d}_{model.name}.sql"

    def plain_tests(self, tests: tuple[DraftTest, ...]) -> Mapping[str, str]:
        """Return the path of each test in plain SQL, by its id."""
        counts: dict[tuple[str, str], int] = {}
        paths = {}
        for test in tests:
            key = (test.kind, test.node)
            counts[key] = counts.get(key, 0) + 1
            paths[test.id] = f"sql/tests/{test.kind}_{test.node}_{counts[key]}.sql"

        return paths


def schema_variable(group: str) -> str:
    """Return dbt's variable for the schema of a source."""
    return "schema_" + group.removeprefix("src_")


@dataclass(frozen=True)
class _NamingInModel:
    layout: Layout
    own: str

    def __call__(self, table: exp.Table) -> str:
        is_own = not table.db and table.name == self.own
        if is_own:
            return "{{ this }}"

        return self.layout.dbt_name(table)


def _columns_read(draft: Draft) -> dict[tuple[str, str], list[str]]:
    """Return the stored tables that models read, by schema and name, with the columns read."""
    read: dict[tuple[str, str], list[str]] = {}
    for model in draft.models:
        stored = []
        for part in model.parts(exp.Table):
            if part.db:
                stored.append(part)

        if not stored:
            continue

        columns = [part.name for part in model.parts(exp.Column)]
        for table in stored:
            read.setdefault((table.db, table.name), []).extend(columns)

    return read


def _source_tables(draft: Draft) -> dict[tuple[str, str], SourceTable]:
    views = UniqueNames(model.relation for model in draft.models)
    groups: dict[str, str] = {}
    keys = UniqueNames()
    group_names = UniqueNames()
    tables = {}
    for (schema, name), columns in _columns_read(draft).items():
        if schema not in groups:
            groups[schema] = group_names.model("src", schema)

        tables[schema, name] = SourceTable(
            schema=schema,
            name=name,
            view=views.model("src", schema, name),
            group=groups[schema],
            key=keys.technical(ascii_name(name) or "source"),
            columns=tuple(dict.fromkeys(columns)),
        )

    return tables
