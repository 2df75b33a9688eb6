"""Texts that stand in several files of a draft, each written once."""

from sqlglot import exp

from etl.planning.draft_test import TypedRows
from etl.rendering.select_rendering import Naming, TreeText
from etl.rendering.value_rows import values_query


class SharedTexts:
    """The texts of a draft's trees and rows, all of which stay as they are meanwhile."""

    def __init__(self) -> None:
        self._trees: dict[int, TreeText] = {}
        self._rows: dict[int, tuple[TypedRows, str]] = {}  # rows are kept, so that ids stay theirs

    def query(self, tree: exp.Expr, naming: Naming, *, jinja: bool) -> str:
        """Return a tree as `render_select` does."""
        text = self._trees.get(id(tree))
        if text is None:
            text = self._trees[id(tree)] = TreeText(tree)

        return text.filled(naming, jinja=jinja)

    def values(self, rows: TypedRows) -> str:
        """Return rows as `values_query` does."""
        kept = self._rows.get(id(rows))
        if kept is None:
            kept = self._rows[id(rows)] = (rows, values_query(rows))

        _, text = kept
        return text
