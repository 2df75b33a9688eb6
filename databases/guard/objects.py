"""Judges which relations, types, operators and special values a query may name."""

from collections.abc import Iterator
from dataclasses import dataclass

from common.errors import ForbiddenObject
from common.text import Text
from databases.guard import refusal_texts as texts
from databases.guard import xpath
from databases.guard.facts import CATALOG_TYPES, ServerFacts, words
from databases.guard.names import Name
from databases.guard.refusal_texts import refused
from databases.guard.walk import Findings, Relation

_SYSTEM_SCHEMAS = ("pg_catalog", "information_schema", "pg_toast")
# Types whose names look like those of system relations.
_PG_TYPES = frozenset(("pg_lsn", "pg_snapshot"))
_CLOCK = frozenset(
    ("current_date", "current_time", "current_time_n", "current_timestamp", "current_timestamp_n")
    + ("localtime", "localtime_n", "localtimestamp", "localtimestamp_n")
)
# Tables and views of PostGIS.
_HARMLESS_EXTENSION_RELATIONS = words(
    "spatial_ref_sys geometry_columns geography_columns raster_columns raster_overviews"
)
_SAMPLING = frozenset(("bernoulli", "system"))


def is_system_schema(name: str) -> bool:
    """Whether `name` belongs to PostgreSQL itself."""
    return name in _SYSTEM_SCHEMAS or name.startswith(("pg_toast", "pg_temp"))


@dataclass(frozen=True)
class ObjectRule:
    """Judges names, but those of functions, by what the server has."""

    facts: ServerFacts

    def refusals(self, found: Findings) -> Iterator[ForbiddenObject]:
        """Every refusal, the most serious first."""
        for text, names in self._refused(found):
            yield from (refused(name, text) for name in names)

    def _refused(self, found: Findings) -> Iterator[tuple[Text, Iterator[str]]]:
        relations = (".".join(relation.parts) for relation in found.relations if self._is_system(relation))
        yield texts.SYSTEM_RELATION, relations
        yield texts.SPECIAL_VALUE, (name.upper() for name in found.value_functions if name not in _CLOCK)
        yield texts.CATALOG_TYPE, (name[-1] for name in found.types if self._is_catalog_type(name))
        yield texts.MIXED_VALUE, iter(found.mixed_values)
        paths = (name for name, path in found.xml_paths if path is None or not xpath.is_plain(path))
        yield texts.ENDLESS_PATH, paths
        methods = (".".join(name) for name in found.sampling_methods if not _is_builtin_sampling(name))
        yield texts.SAMPLING_METHOD, methods
        yield texts.RISKY_OPERATOR, (".".join(name) for name in found.operators if self._is_risky_operator(name))

    def _is_system(self, relation: Relation) -> bool:
        if relation.schema is not None:
            return is_system_schema(relation.schema) or self._is_extension(relation.schema, relation.name)
        if relation.name in self.facts.system_relations:
            return True
        for schema in self.facts.search_path:
            if self._is_extension(schema, relation.name):
                return True
            if (schema, relation.name) in self.facts.relations:
                return False
        return relation.name.startswith("pg_") or any(map(is_system_schema, self.facts.search_path))

    def _is_extension(self, schema: str, name: str) -> bool:
        """Whether it is an extension's own table or view: these may show other sessions' statements or hold secrets."""
        if not self.facts.is_complete:
            return name.startswith("pg_stat_")
        return (schema, name) in self.facts.extension_relations and name not in _HARMLESS_EXTENSION_RELATIONS

    def _is_catalog_type(self, name: Name) -> bool:
        if len(name) > 1 and name[-2] != "pg_catalog":
            return is_system_schema(name[-2])
        element = name[-1].removeprefix("_")  # `_regclass` is another way to write `regclass[]`
        if element.startswith("pg_") and element not in _PG_TYPES:
            return not any(relation == element for _, relation in self.facts.relations)
        return element in CATALOG_TYPES

    def _is_risky_operator(self, name: Name) -> bool:
        if not name or name[-1] not in self.facts.volatile_operators or name[:-1] == ("pg_catalog",):
            return False
        return len(name) > 1 or name[-1] not in self.facts.shared_operators


def _is_builtin_sampling(name: Name) -> bool:
    return name[-1] in _SAMPLING and name[:-1] in ((), ("pg_catalog",))
