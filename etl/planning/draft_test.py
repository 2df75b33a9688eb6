"""A test of a draft, as it is made, run in scratch and written into the artefact."""

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from common.text import Text
from etl.schemas.evidence import TestKind


@dataclass(frozen=True)
class TypedRows:
    """Rows of a table or model.

    Attributes:
        schema: the schema of a table of the datasource; empty for a model.
        columns: names with PostgreSQL's types.
        rows: Python values as psycopg gives them, in the order of `columns`.
    """

    schema: str
    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class UnitCase:
    """Rows that a model is built from, and those that it must give.

    Attributes:
        sources: all tables of the datasource behind the model, for building whatever leads to it.
        inputs: what the model itself reads; None while no build has shown the rows of other models.
        expected: the model's rows in any order; columns that are not there are not compared.
    """

    sources: tuple[TypedRows, ...]
    inputs: tuple[TypedRows, ...] | None
    expected: TypedRows


@dataclass(frozen=True)
class DraftTest:
    """A test of one model.

    Attributes:
        id: unique in the draft, `[a-z0-9_]+`: the name of its file or of dbt's test.
        title: what holds when it passes.
        case: the case of a unit test.
        failures: a query over models and tables of the datasource, whose rows break the test; None
            for unit tests and for what only the build itself shows.
        columns: the columns of the model, which the test is about.
        values: the values of `accepted_values`.
        parent: the model and its column that `relationships` refers to.
        is_warning: a failure is told, and fails nothing.
    """

    id: str
    kind: TestKind
    node: str
    title: Text
    case: UnitCase | None = None
    failures: exp.Query | None = None
    columns: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    parent: tuple[str, str] | None = None
    is_warning: bool = False
