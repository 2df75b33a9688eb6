"""The name and the layer of a table, as requests and drafts speak of it."""

from common.values import Catalog, Table
from etl.schemas.requirement import Layer

_LAYERS: tuple[tuple[str, Layer], ...] = (
    ("ods_", "ODS"),
    ("stg_", "ODS"),
    ("dwd_", "DWD"),
    ("dim_", "DWD"),
    ("fct_", "DWD"),
    ("dws_", "DWS"),
    ("ads_", "ADS"),
)


def layer_of(table: Table) -> Layer:
    """Return the layer that a table's prefix or its schema's name says; else it is a source."""
    for prefix, layer in _LAYERS:
        is_schema_of_layer = f"{table.schema}_" == prefix
        if is_schema_of_layer or table.name.startswith(prefix):
            return layer

    return "SRC"


def layer_of_name(name: str) -> Layer:
    """Return the layer that a prefix says; else it is a source."""
    for prefix, layer in _LAYERS:
        if name.startswith(prefix):
            return layer

    return "SRC"


def short_name(table: Table, catalog: Catalog) -> str:
    """Return the table's name, with its schema where another one is called so too."""
    is_alone = len(catalog.by_name[table.name]) == 1
    if is_alone:
        return table.name

    return f"{table.schema}.{table.name}"
