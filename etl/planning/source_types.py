"""The types that a source's columns have in a draft."""

from etl.meaning.value_kinds import bare_type, kind_of_type

# Of PostgreSQL's own types that are no numbers, texts or days: those that can be compared.
_KEPT = frozenset(
    (
        "uuid",
        "bytea",
        "interval",
        "time without time zone",
        "time with time zone",
        "inet",
        "cidr",
        "jsonb",
        "oid",
    )
)
_TEXTS = ("character varying", "varchar", "citext", "name")


def draft_type(stored: str) -> str:
    """Return the type that a stored column gets.

    Texts have no length, money is numeric, and types that other servers may lack, or whose values
    can't be compared, are text.
    """
    bare = bare_type(stored)
    if bare in _TEXTS:
        return "text"
    if kind_of_type(stored) != "other":
        return stored
    if bare == "money":
        return "numeric"
    if bare.removesuffix("[]") in _KEPT:
        return stored

    is_plain_list = bare.endswith("[]") and kind_of_type(bare.removesuffix("[]")) != "other"
    return stored if is_plain_list else "text"
