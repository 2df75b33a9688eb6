"""A draft: the plan and, for each of its nodes, one SELECT as a tree."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from sqlglot import exp

from etl.meaning.bound import BoundIntent
from etl.schemas.plan import ArchitecturePlan, EtlNode

P = TypeVar("P", bound=exp.Expr)


@dataclass(frozen=True)
class DraftModel:
    """A node with its SELECT.

    In the trees a table of the datasource is an `exp.Table` with a schema (`db`), another model one
    without; a variable of the project is an `etl_variable(name, default)`, see
    `etl.planning.sql_trees`.

    Attributes:
        relation: what is created; the node's name, except for the target.
        select: gives the columns of the node, in their order.
        increment: over the columns of the model, which rows are computed again when the relation
            is there already; it reads the relation as a table of the model's own name.
        merge_key: the column by which rows that are computed again replace those that are there.
        meaning: an intent whose rows are those of the model, apart from columns that only tell
            rows apart; None for SQL that a user wrote, and for the model whose rows the whole
            intent means.
        is_further: whether it goes beyond the intent, so that nothing says what its rows are.
    """

    node: EtlNode
    select: exp.Query
    relation: str
    increment: exp.Expr | None = None
    merge_key: str | None = None
    meaning: BoundIntent | None = None
    is_further: bool = False

    @property
    def name(self) -> str:
        """Return the name of its node."""
        return self.node.name

    @cached_property
    def _nodes(self) -> tuple[exp.Expr, ...]:
        return tuple(self.select.walk())

    def parts(self, *kinds: type[P]) -> Iterator[P]:
        """Yield the parts of these kinds in its tree, which stays as it is from the first time."""
        return (node for node in self._nodes if isinstance(node, kinds))

    @property
    def types(self) -> dict[str, str]:
        """Return the types of its columns by their names, in the columns' order."""
        return {column.name: column.type for column in self.node.columns}


@dataclass(frozen=True)
class Draft:
    """The plan with its models, in topological order; the last one is the target."""

    plan: ArchitecturePlan
    models: tuple[DraftModel, ...]

    @property
    def target(self) -> DraftModel:
        """Return the model that the request asks for."""
        return self.model(self.plan.target)

    @property
    def meant(self) -> DraftModel:
        """Return the model whose rows the intent means: the target, or what a further one reads."""
        target = self.target
        if target.is_further:
            return self.model(target.node.inputs[0])

        return target

    def model(self, name: str) -> DraftModel:
        """Return the model of that name.

        Raises:
            KeyError: there is none.
        """
        for model in self.models:
            if model.name == name:
                return model

        raise KeyError(name)


def nodes_behind(nodes: Sequence[EtlNode], name: str) -> set[str]:
    """Return the names of a node and of all that it reads, directly or not."""
    needed = {name}
    for node in reversed(nodes):
        if node.name in needed:
            needed.update(node.inputs)

    return needed
