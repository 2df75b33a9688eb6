"""Which relations, types, operators and special values a query may name."""

from collections.abc import Iterator
from dataclasses import dataclass

from common.errors import ForbiddenObject
from common.text import Text
from databases.guard import xpath
from databases.guard.facts import CATALOG_TYPES, ServerFacts, words
from databases.guard.walk import Findings, Name, Relation

_SYSTEM_SCHEMAS = ("pg_catalog", "information_schema", "pg_toast")
# Types that are named like system relations but are not.
_PG_TYPES = frozenset(("pg_lsn", "pg_snapshot"))
_CLOCK = frozenset(
    ("current_date", "current_time", "current_time_n", "current_timestamp", "current_timestamp_n")
    + ("localtime", "localtime_n", "localtimestamp", "localtimestamp_n")
)
# What PostGIS keeps beside the user's tables.
_HARMLESS_EXTENSION_RELATIONS = words(
    "spatial_ref_sys geometry_columns geography_columns raster_columns raster_overviews"
)
_SAMPLING = frozenset(("bernoulli", "system"))


def is_system_schema(name: str) -> bool:
    """Whether `name` belongs to PostgreSQL itself."""
    return name in _SYSTEM_SCHEMAS or name.startswith(("pg_toast", "pg_temp"))


@dataclass(frozen=True)
class ObjectRule:
    """Judges names other than functions' against what the server has."""

    facts: ServerFacts

    def refusals(self, found: Findings) -> Iterator[ForbiddenObject]:
        """Every refusal, in the order of severity."""
        yield from (_system_relation(relation) for relation in found.relations if self._is_system(relation))
        yield from (_special_value(name) for name in found.value_functions if name not in _CLOCK)
        yield from (_catalog_type(name) for name in found.types if self._is_catalog_type(name))
        yield from map(_mixed_value, found.mixed_values)
        yield from (_path(name) for name, path in found.xml_paths if path is None or not xpath.is_plain(path))
        yield from (_sampling_method(name) for name in found.sampling_methods if not _is_builtin_sampling(name))
        yield from (_operator(name) for name in found.operators if self._is_risky_operator(name))

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
        """Extensions' own tables and views may show other sessions' statements or hold secrets."""
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


def _system_relation(relation: Relation) -> ForbiddenObject:
    name = ".".join(relation.parts)
    zh = f"不允许查询系统表或系统视图：{name}。请查询业务表。"
    return ForbiddenObject(
        name, Text(zh, f"System tables and views may not be queried: {name}. Query your own tables.")
    )


def _special_value(name: str) -> ForbiddenObject:
    name = name.upper()
    zh = f"不允许使用 {name}：它读取会话或账号信息。"
    return ForbiddenObject(name, Text(zh, f"{name} may not be used: it reveals the session or its role."))


def _catalog_type(name: Name) -> ForbiddenObject:
    zh = f"不允许使用类型 {name[-1]}：它读取系统目录。"
    return ForbiddenObject(name[-1], Text(zh, f"The type {name[-1]} may not be used: it reads the system catalogue."))


def _path(name: str) -> ForbiddenObject:
    zh = f"{name} 的路径必须是由简单步骤组成的常量，最多含一个 // ，条件中不能再有路径：其他路径的计算可能无法停止。"
    en = f"The path of {name} must be a constant of plain steps, with at most one // and no paths in conditions"
    en += ": nothing stops the evaluation of others."
    return ForbiddenObject(name, Text(zh, en))


def _mixed_value(name: str) -> ForbiddenObject:
    zh = f"{name} 只能显示、排序或分组，其他用法请写成 {name}::text。"
    en = f"{name} may only be shown, sorted or grouped by as it is; write {name}::text for anything else."
    return ForbiddenObject(name, Text(zh, en))


def _sampling_method(name: Name) -> ForbiddenObject:
    method = ".".join(name)
    zh = f"不允许使用抽样方法 {method}，可用 BERNOULLI 或 SYSTEM。"
    return ForbiddenObject(method, Text(zh, f"The sampling method {method} may not be used; use BERNOULLI or SYSTEM."))


def _operator(name: Name) -> ForbiddenObject:
    symbol = ".".join(name)
    zh = f"不允许使用自定义运算符 {symbol}：它调用可能有副作用的函数。"
    return ForbiddenObject(
        symbol, Text(zh, f"The operator {symbol} may not be used: its function may have side effects.")
    )
