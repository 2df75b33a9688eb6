"""Statements that make servers, foreign tables and comments in a hub, for sources of any engine."""

from collections.abc import Iterable, Mapping

from psycopg2 import extensions, sql

Cursor = extensions.cursor


def create_server(
    cursor: Cursor,
    name: str,
    wrapper: str,
    options: Mapping[str, str],
    reader: str,
    user: Mapping[str, str],
) -> None:
    """Create the server of a source, with mappings for its owner and for the role that asks.

    Args:
        wrapper: the foreign data wrapper, which is the name of its extension as well.
        options: the options of the server.
        reader: the hub's role that asks.
        user: options of the mappings.
    """
    extension = sql.Identifier(wrapper)
    cursor.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(extension))
    cursor.execute(
        sql.SQL("CREATE SERVER {} FOREIGN DATA WRAPPER {} OPTIONS ({})").format(
            sql.Identifier(name), extension, _written_options(options)
        )
    )
    cursor.execute("SELECT current_user")
    (owner,) = cursor.fetchall()[0]
    for role in dict.fromkeys((owner, reader)):
        cursor.execute(
            sql.SQL("CREATE USER MAPPING FOR {} SERVER {} OPTIONS ({})").format(
                sql.Identifier(role), sql.Identifier(name), _written_options(user)
            )
        )


def create_foreign_table(
    cursor: Cursor,
    server: str,
    key: tuple[str, str],
    columns: sql.Composable,
    options: Mapping[str, str],
) -> None:
    """Create a foreign table.

    Args:
        key: its schema and name.
        columns: as SQL defines them, by commas.
        options: say which table of the source it is.
    """
    cursor.execute(
        sql.SQL("CREATE FOREIGN TABLE {} ({}) SERVER {} OPTIONS ({})").format(
            sql.Identifier(*key), columns, sql.Identifier(server), _written_options(options)
        )
    )


def column_options(options: Mapping[str, str]) -> sql.Composable:
    """Return the options of a foreign table's column, as its definition has them."""
    return sql.SQL("OPTIONS ({})").format(_written_options(options))


def comment_on(
    cursor: Cursor,
    kind: str,
    key: tuple[str, str],
    comment: str | None,
    of_columns: Iterable[tuple[str, str | None]],
) -> None:
    """Set the comments of a table and its columns, in one message.

    Args:
        kind: as SQL names it: `FOREIGN TABLE` or `VIEW`.
        comment: the table's comment; None: it has none, and loses the one that it had.
        of_columns: names with comments.
    """
    place = sql.SQL(kind + " {}").format(sql.Identifier(*key))
    statements = [_comment(place, comment)]
    for name, said in of_columns:
        column = sql.SQL("COLUMN {}").format(sql.Identifier(*key, name))
        statements.append(_comment(column, said))

    cursor.execute(sql.SQL("; ").join(statements))


def _comment(place: sql.Composable, comment: str | None) -> sql.Composable:
    return sql.SQL("COMMENT ON {} IS {}").format(place, sql.Literal(comment))


def _written_options(options: Mapping[str, str]) -> sql.Composable:
    pairs = [
        sql.SQL("{} {}").format(sql.Identifier(name), sql.Literal(value))
        for name, value in options.items()
    ]
    return sql.SQL(", ").join(pairs)
