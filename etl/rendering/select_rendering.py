"""A model's tree as text: with dbt's references or with plain relations.

Both texts are the same but for what stands for tables and variables. Texts of people and of the
database are broken up, so that Jinja finds nothing in them and line ends stay what they are.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from sqlglot import exp
from sqlglot.generators.postgres import PostgresGenerator

from common.errors import InternalError
from common.text import Text
from etl.planning.sql_trees import VARIABLE, cast
from etl.rendering.jinja_text import cut_inside_tokens, has_jinja, jinja_string
from guard.walk import walk
from postgres.identifiers import quoted
from sqltree.parsing import parse

Naming = Callable[[exp.Table], str]
"""Gives what stands for a table: a quoted name, or a call of Jinja."""
VariableTree = Callable[[str, str], exp.Expr]
"""Gives what stands for a variable of the project, by its name and its default."""
_ODD_CHARACTERS = re.compile(r"\{(?=[{%#])|\r")
_ODD_IN_NAMES = re.compile(r"\{(?=[{%#])|[\r\n]")
_ESCAPES = str.maketrans({'"': '""', "\\": "\\\\", "{": "\\007B", "\r": "\\000D", "\n": "\\000A"})
# PostgreSQL's 1,664 columns with their names take more than a statement from outside may have.
_MOST_CHARS = 1_000_000
_NO_QUERY = Text("草稿中的 SQL 不是单个查询。", "A draft's SQL is not one single query.")
_CARRIAGE_RETURN = "\r"
_PLACE = "\0"  # PostgreSQL has no such character in names and texts
_NAMES = frozenset({"this", "db", "alias"})


def render_select(select: exp.Query, naming: Naming, *, jinja: bool) -> str:
    """Return a model's SELECT as text, its tables named by `naming`."""
    return _sql_of(select, naming, _variable_tree(jinja=jinja))


def render_condition(condition: exp.Expr, naming: Naming, *, jinja: bool) -> str:
    """Return a condition as text, its tables named by `naming`."""
    return _sql_of(condition, naming, _variable_tree(jinja=jinja))


def render_with_defaults(select: exp.Query, naming: Naming) -> str:
    """Return a model's SELECT as text, with the default of each variable in its place."""
    return _sql_of(select, naming, _default_day)


def _variable_tree(*, jinja: bool) -> VariableTree:
    return _jinja_variable if jinja else _setting


class TreeText:
    """A tree's text, written once, with places for what stands for its tables and variables.

    Lines are broken by how long their parts are. A tree in which that depends on what stands in a
    place is written anew each time, which is rare: most parts with a place are long without it.
    """

    def __init__(self, tree: exp.Expr) -> None:
        self._tree = tree
        writer = _PlaceWriter()
        self._pieces: list[str] = writer.generate(tree, copy=False).split(_PLACE)
        self._places = writer.places
        is_ambiguous = len(self._pieces) != len(self._places) + 1  # a text has such a character
        self._is_shared = not writer.depends_on_names and not is_ambiguous

    def filled(self, naming: Naming, *, jinja: bool) -> str:
        """Return the text as `render_select` does."""
        variable = _variable_tree(jinja=jinja)
        if not self._is_shared:
            return _sql_of(self._tree, naming, variable)

        parts = [self._pieces[0]]
        for place, piece in zip(self._places, self._pieces[1:], strict=True):
            if isinstance(place, exp.Table):
                parts += (_table_text(*_named(place, naming)), piece)
            else:
                parts += (_sql_of(place, naming, variable), piece)

        return "".join(parts)


def _sql_of(tree: exp.Expr, naming: Naming, variable: VariableTree) -> str:
    text: str = _DraftWriter(naming, variable).generate(tree, copy=False)
    return text


class _DraftWriter(PostgresGenerator):
    """Writes a tree without changing it, so that models need no copy for each of their texts.

    Tables are written by their names in a place, variables as that place reads them, and names and
    literals so that neither Jinja nor PostgreSQL misreads them.
    """

    def __init__(self, naming: Naming, variable: VariableTree) -> None:
        super().__init__(pretty=True, comments=False, dialect="postgres")
        self._naming = naming
        self._variable = variable

    def table_sql(self, expression: exp.Table, sep: str = " AS ") -> str:
        if not _is_of_with(expression):
            named, alias = _named(expression, self._naming)
            if _is_only_named(expression):
                return _table_text(named, alias)

            expression = _replaced(expression, named, alias)

        text: str = super().table_sql(expression, sep)
        return text

    def identifier_sql(self, expression: exp.Identifier) -> str:
        return _name_text(expression.name, expression.quoted)

    def literal_sql(self, expression: exp.Literal) -> str:
        is_odd = expression.is_string and _ODD_CHARACTERS.search(expression.name)
        if is_odd:
            return str(self.sql(_broken(expression.name)))

        text: str = super().literal_sql(expression)
        return text

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        if expression.name == VARIABLE:
            name, default = (part.name for part in expression.expressions)
            return str(self.sql(self._variable(name, default)))

        text: str = super().anonymous_sql(expression)
        return text


class _PlaceWriter(_DraftWriter):
    """Writes a mark for each table and variable."""

    def __init__(self) -> None:
        super().__init__(_quoted_name, _setting)
        self.places: list[exp.Expr] = []
        self.depends_on_names = False

    def table_sql(self, expression: exp.Table, sep: str = " AS ") -> str:
        if _is_of_with(expression):
            return super().table_sql(expression, sep)
        if not _is_only_named(expression):
            self.depends_on_names = True

        return self._place(expression)

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        if expression.name == VARIABLE:
            return self._place(expression)

        return super().anonymous_sql(expression)

    def too_wide(self, args: Iterable[str]) -> bool:
        parts = list(args)
        is_wide = bool(super().too_wide(parts))
        if not is_wide and any(_PLACE in part for part in parts):
            self.depends_on_names = True

        return is_wide

    def _place(self, expression: exp.Expr) -> str:
        self.places.append(expression)
        return _PLACE


def _quoted_name(table: exp.Table) -> str:
    return quoted(table.name)


def _is_of_with(table: exp.Table) -> bool:
    """Tell whether a table is a query of a WITH around it."""
    if table.db:
        return False

    around = table.find_ancestor(exp.Query)
    while around is not None:
        if any(query.alias == table.name for query in around.ctes):
            return True

        around = around.find_ancestor(exp.Query)

    return False


def _named(table: exp.Table, naming: Naming) -> tuple[str, str]:
    """Return what stands for a table, and the own name by which its columns go on, if needed."""
    text = naming(table)
    if table.alias or text != quoted(table.name):
        return text, identifier_text(table.alias or table.name)

    return text, ""


def _table_text(named: str, alias: str) -> str:
    return f"{named} AS {alias}" if alias else named


def _is_only_named(table: exp.Table) -> bool:
    """Tell whether nothing but names stands in a tree's table: no sample, no column names."""
    return all(key in _NAMES or not value for key, value in table.args.items())


def _replaced(table: exp.Table, text: str, alias: str) -> exp.Table:
    """Return the table with another text in the place of its name."""
    named = table.copy()
    named.set("this", exp.Var(this=text))
    named.set("db", None)
    if alias:
        named.set("alias", exp.TableAlias(this=exp.Var(this=alias)))

    return named


@lru_cache(maxsize=4096)
def _name_text(name: str, is_quoted: bool) -> str:
    if _ODD_IN_NAMES.search(name):
        return identifier_text(name)

    text: str = exp.Identifier(this=name, quoted=is_quoted).sql("postgres")
    return text


def identifier_text(name: str) -> str:
    """Return a name as SQL takes it, without anything that Jinja would take for its own."""
    if not _ODD_IN_NAMES.search(name):
        return quoted(name)

    return f'U&"{name.translate(_ESCAPES)}"'


def string_text(text: str) -> str:
    """Return a text as SQL's literal, without anything that Jinja would take for its own."""
    is_plain = "{" not in text and "\r" not in text
    if is_plain or not _ODD_CHARACTERS.search(text):
        return "'" + text.replace("'", "''") + "'"

    broken: str = _broken(text).sql("postgres")
    return broken


def _broken(text: str) -> exp.Expr:
    """Return a text as a sum of literals that hold no token of Jinja and no carriage return."""
    parts: list[exp.Expr] = []
    for line in text.split(_CARRIAGE_RETURN):
        for piece in cut_inside_tokens(line):
            if piece:
                parts.append(exp.Literal.string(piece))

        parts.append(exp.Anonymous(this="CHR", expressions=[exp.Literal.number(13)]))

    parts.pop()  # behind the last line there is no carriage return
    total = parts[0]
    for part in parts[1:]:
        total = exp.DPipe(this=total, expression=part)

    return exp.Paren(this=total)


def _jinja_variable(name: str, default: str) -> exp.Expr:
    """Return a day as dbt's variable, with its default."""
    call = f"'{{{{ var({jinja_string(name)}, {jinja_string(default)}) }}}}'"
    return cast(exp.Var(this=call), "date")


def _setting(name: str, default: str) -> exp.Expr:
    """Return a day as PostgreSQL's setting, or its default where that is not set."""
    setting = exp.Anonymous(
        this="CURRENT_SETTING", expressions=[exp.Literal.string(f"etl.{name}"), exp.true()]
    )
    setting_or_null = exp.Nullif(this=setting, expression=exp.Literal.string(""))
    return cast(
        exp.Coalesce(this=setting_or_null, expressions=[exp.Literal.string(default)]), "date"
    )


def _default_day(_: str, default: str) -> exp.Expr:
    """Return the default of a day."""
    return cast(exp.Literal.string(default), "date")


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
