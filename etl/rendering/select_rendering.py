"""A model's tree as text: with dbt's references or with plain relations.

Both texts are the same but for what stands for tables and variables. Texts of people and of the
database are broken up, so that Jinja finds nothing in them and line ends stay what they are.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from sqlglot import exp

from common.errors import InternalError
from common.text import Text
from etl.planning.sql_trees import VARIABLE, cast
from etl.rendering.jinja_text import broken_text, has_jinja, jinja_string
from guard.walk import walk
from postgres.identifiers import quoted
from sqltree.parsing import parse

Naming = Callable[[exp.Table], str]
"""Gives what stands for a table: a quoted name, or a call of Jinja."""
_ODD_CHARACTERS = re.compile(r"\{(?=[{%#])|\r")
_ODD_IN_NAMES = re.compile(r"\{(?=[{%#])|[\r\n]")
_ESCAPES = str.maketrans({'"': '""', "\\": "\\\\", "{": "\\007B", "\r": "\\000D", "\n": "\\000A"})
# PostgreSQL's 1,664 columns with their names take more than a statement from outside may have.
_MOST_CHARS = 1_000_000
_REPLACED = (exp.Anonymous, exp.Literal, exp.Identifier)
_NO_QUERY = Text("草稿中的 SQL 不是单个查询。", "A draft's SQL is not one single query.")
_CARRIAGE_RETURN = "\r"


def render_select(select: exp.Query, naming: Naming, *, jinja: bool) -> str:
    """Return a model's SELECT as text, its tables named by `naming`."""
    return _rendered(exp.Subquery(this=select.copy()), naming, jinja=jinja)


def render_condition(condition: exp.Expr, naming: Naming, *, jinja: bool) -> str:
    """Return a condition as text, its tables named by `naming`."""
    return _rendered(exp.Paren(this=condition.copy()), naming, jinja=jinja)


def _rendered(root: exp.Expr, naming: Naming, *, jinja: bool) -> str:
    """Return the text of what the root holds, which is changed; the tree is walked once."""
    nodes = list(root.find_all(*_REPLACED, exp.CTE, exp.Table))
    queries = {one.alias for one in nodes if isinstance(one, exp.CTE)}
    for table in nodes:
        if isinstance(table, exp.Table) and (table.db or table.name not in queries):
            _name_table(table, naming)
    for node in nodes:
        # The names of a table that stands for another are no part of the tree any more.
        if isinstance(node, _REPLACED) and not _is_named(node.parent):
            _replace(node, jinja=jinja)
    text: str = root.this.sql(dialect="postgres", pretty=True, comments=False, copy=False)
    return text


def _is_named(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Table) and isinstance(node.this, exp.Var)


def _replace(node: exp.Expr, *, jinja: bool) -> None:
    """Put something else in a node's place where Jinja or PostgreSQL would misread it."""
    if isinstance(node, exp.Anonymous):
        if node.name == VARIABLE:
            node.replace(_variable(node, jinja=jinja))
    elif isinstance(node, exp.Identifier):
        if _ODD_IN_NAMES.search(node.name):
            node.replace(exp.Var(this=identifier_text(node.name)))
    elif node.is_string and _ODD_CHARACTERS.search(node.name):
        node.replace(_broken(node.name))


def _name_table(table: exp.Table, naming: Naming) -> None:
    """Put what `naming` gives in the table's place; its columns go on by its own name."""
    name, alias = table.name, table.alias
    text = naming(table)
    own = exp.Var(this=identifier_text(alias or name))
    table.set("this", exp.Var(this=text))
    table.set("db", None)
    if alias or text != quoted(name):
        table.set("alias", exp.TableAlias(this=own))


def identifier_text(name: str) -> str:
    """Return a name as SQL takes it, without anything that Jinja would take for its own."""
    if not _ODD_IN_NAMES.search(name):
        return quoted(name)
    return f'U&"{name.translate(_ESCAPES)}"'


def string_text(text: str) -> str:
    """Return a text as SQL's literal, without anything that Jinja would take for its own."""
    if not _ODD_CHARACTERS.search(text):
        return "'" + text.replace("'", "''") + "'"
    broken: str = _broken(text).sql("postgres")
    return broken


def _broken(text: str) -> exp.Expr:
    """Return a text as a sum of literals that hold no token of Jinja and no carriage return."""
    parts: list[exp.Expr] = []
    for number, line in enumerate(text.split(_CARRIAGE_RETURN)):
        if number:
            parts.append(exp.Anonymous(this="CHR", expressions=[exp.Literal.number(13)]))
        pieces = [piece for piece in broken_text(line) if piece]
        parts.extend(exp.Literal.string(piece) for piece in pieces)
    total = parts[0]
    for part in parts[1:]:
        total = exp.DPipe(this=total, expression=part)
    return exp.Paren(this=total)


def _variable(variable: exp.Anonymous, *, jinja: bool) -> exp.Expr:
    """Return a day that can be set from outside, and what it is otherwise."""
    name, default = (part.name for part in variable.expressions)
    if jinja:
        call = f"'{{{{ var({jinja_string(name)}, {jinja_string(default)}) }}}}'"
        return cast(exp.Var(this=call), "date")
    setting = exp.Anonymous(
        this="CURRENT_SETTING", expressions=[exp.Literal.string(f"etl.{name}"), exp.true()]
    )
    given = exp.Nullif(this=setting, expression=exp.Literal.string(""))
    return cast(exp.Coalesce(this=given, expressions=[exp.Literal.string(default)]), "date")


@lru_cache(maxsize=1024)
def prove_query(sql: str) -> None:
    """Check by PostgreSQL's own grammar that a model's text is one query and nothing else.

    Texts that were proven lately are not parsed again.

    Raises:
        StatementRejected: it is not.
    """
    statements = parse(sql, _MOST_CHARS)
    if len(statements) != 1 or has_jinja(sql):
        raise InternalError(_NO_QUERY)
    walk(statements[0].kind, statements[0].node)
