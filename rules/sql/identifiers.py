"""Writes names, literals and dates as SQL."""

import re
from decimal import Decimal

from common.values import Catalog
from knowledge.atoms import listed
from rules.linking.dates import Moment
from rules.schema.schema import TableKey

# Words PostgreSQL can't take as a bare column, table or alias name.
_RESERVED = frozenset(
    listed(
        "all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean "
        "both case cast "
        "char character check coalesce collate collation column concurrently constraint create cross current_catalog "
        "current_date current_role current_schema current_time current_timestamp current_user dec decimal "
        "default deferrable "
        "desc distinct do else end except exists extract false fetch float for foreign freeze from full grant "
        "greatest group "
        "grouping having ilike in initially inner inout int integer intersect interval into is isnull join json_array "
        "json_arrayagg json_exists json_object json_objectagg json_query json_scalar json_serialize json_table "
        "json_value "
        "lateral leading least left like limit localtime localtimestamp merge_action national natural nchar "
        "none normalize "
        "not notnull null nullif numeric offset on only or order out outer overlaps overlay placing position precision "
        "primary real references returning right row select session_user setof similar smallint some substring "
        "symmetric "
        "system_user table tablesample then time timestamp to trailing treat trim true union unique user using "
        "values varchar "
        "variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists xmlforest "
        "xmlnamespaces xmlparse "
        "xmlpi xmlroot xmlserialize xmltable day hour minute month second year"
    )
)
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*\Z")


def quoted(name: str) -> str:
    """The name as an SQL identifier, in quotes only when it needs them."""
    if _PLAIN.match(name) and name not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def is_reserved(name: str) -> bool:
    """Whether a name in lower case needs quotes because it is a reserved word."""
    return name in _RESERVED


def table_name(catalog: Catalog, key: TableKey) -> str:
    """The table's name, with its schema unless the search path leads to this very table."""
    schema, name = key
    for candidate in catalog.search_path:
        if (candidate, name) in catalog.by_key:
            if candidate == schema:
                return quoted(name)
            break
    return f"{quoted(schema)}.{quoted(name)}"


def literal(value: str) -> str:
    """A string literal; backslashes are plain characters whatever the server's settings."""
    escaped = value.replace("\x00", "").replace("'", "''")
    return "E'" + escaped.replace("\\", "\\\\") + "'" if "\\" in escaped else f"'{escaped}'"


def number(value: Decimal) -> str:
    """A numeric literal without exponent."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def like_pattern(text: str, *, prefix: bool, suffix: bool) -> str:
    """A LIKE pattern literal for text at the beginning (`prefix`), the end (`suffix`) or anywhere."""
    escaped = re.sub(r"([\\%_])", r"\\\1", text)
    return literal(f"{'' if prefix else '%'}{escaped}{'' if suffix else '%'}")


def moment_sql(moment: Moment) -> str:
    """A day as an expression of type date."""
    if moment.day is not None:
        return f"DATE '{moment.day.isoformat()}'"
    base = "CURRENT_DATE" if moment.trunc == "day" else f"date_trunc('{moment.trunc}', CURRENT_DATE)"
    if moment.months:
        base += _shift(moment.months, "month")
    if moment.days and (moment.months or moment.trunc != "day"):
        base += _shift(moment.days, "day")
    elif moment.days:
        return f"{base} {'+' if moment.days > 0 else '-'} {abs(moment.days)}"
    return base if base == "CURRENT_DATE" else f"({base})::date" if " " in base.split(")")[-1] else f"{base}::date"


def _shift(count: int, unit: str) -> str:
    amount, unit = (abs(count) // 12, "year") if unit == "month" and count % 12 == 0 else (abs(count), unit)
    return f" {'+' if count > 0 else '-'} INTERVAL '{amount} {unit}{'s' if amount > 1 else ''}'"
