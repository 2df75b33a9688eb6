"""Judges which relations, types, operators and special values a query may name."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import filterfalse

from common.errors import ForbiddenObject
from common.text import Text
from common.word_files import words
from guard import refusal_texts as texts
from guard.document_paths import is_plain_xpath
from guard.facts import CATALOG_TYPES, Name, ServerFacts, qualifier_of
from guard.refusal_texts import refusal_of_object
from guard.walk import Findings, Relation

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
_SAMPLING = frozenset(
    (*schema, method) for schema in ((), ("pg_catalog",)) for method in ("bernoulli", "system")
)


def is_system_schema(name: str) -> bool:
    """Tell whether `name` belongs to PostgreSQL itself."""
    if name in _SYSTEM_SCHEMAS:
        return True

    return name.startswith(("pg_toast", "pg_temp"))


@dataclass(frozen=True)
class ObjectRule:
    """Judges names, but those of functions, by what the server has."""

    facts: ServerFacts

    def refusals(self, findings: Findings) -> Iterator[ForbiddenObject]:
        """Yield every refusal, the most serious first."""
        for text, name in self._refused(findings):
            yield refusal_of_object(name, text)

    def _refused(self, findings: Findings) -> Iterator[tuple[Text, str]]:
        """Yield the name of everything that is refused, with the text that says why."""
        for relation in filter(self._is_system, findings.relations):
            dotted = ".".join(relation.parts)
            yield texts.SYSTEM_RELATION, dotted

        for name in filterfalse(_CLOCK.__contains__, findings.value_functions):
            yield texts.SPECIAL_VALUE, name.upper()

        for type_name in filter(self._is_catalog_type, findings.types):
            yield texts.CATALOG_TYPE, type_name[-1]

        for value in findings.mixed_values:
            yield texts.MIXED_VALUE, value

        if findings.has_table_names:
            yield from self._refused_table_names(findings)

        yield from _refused_methods(findings)

    def _refused_table_names(self, findings: Findings) -> Iterator[tuple[Text, str]]:
        """Yield `tableoid::regclass` where another column may be meant by `tableoid`."""
        is_renamed = findings.renames_tableoid or "tableoid" in self.facts.column_names
        if is_renamed:
            yield texts.RISKY_VALUE, "tableoid::regclass"

    def _is_system(self, relation: Relation) -> bool:
        schema, name = relation.schema, relation.name
        if schema is not None:
            is_own = is_system_schema(schema)
            return is_own or self._is_extension(schema, name)

        if name in self.facts.system_relations:
            return True

        for visible in self.facts.search_path:
            if self._is_extension(visible, name):
                return True

            is_users = (visible, name) in self.facts.relations
            if is_users:
                return False

        has_system_name = name.startswith("pg_")
        return has_system_name or any(map(is_system_schema, self.facts.search_path))

    def _is_extension(self, schema: str, name: str) -> bool:
        """Tell whether it is an extension's own table or view.

        These may show other sessions' statements or hold secrets.
        """
        if not self.facts.is_complete:
            return name.startswith("pg_stat_")
        if name in _HARMLESS_EXTENSION_RELATIONS:
            return False

        return (schema, name) in self.facts.extension_relations

    def _is_catalog_type(self, name: Name) -> bool:
        schema = qualifier_of(name) or "pg_catalog"
        if schema != "pg_catalog":
            return is_system_schema(schema)

        element = name[-1].removeprefix("_")  # `_regclass` is another way to write `regclass[]`
        has_system_name = element.startswith("pg_") and element not in _PG_TYPES
        if not has_system_name:
            return element in CATALOG_TYPES

        own_relations = {relation for _, relation in self.facts.relations}
        return element not in own_relations


def _refused_methods(findings: Findings) -> Iterator[tuple[Text, str]]:
    """Yield XPaths that may take for ever, and sampling methods of extensions."""
    for function, path in findings.xml_paths:
        is_plain = path is not None and is_plain_xpath(path)
        if not is_plain:
            yield texts.ENDLESS_PATH, function

    for name in filterfalse(_SAMPLING.__contains__, findings.sampling_methods):
        method = ".".join(name)
        yield texts.SAMPLING_METHOD, method
