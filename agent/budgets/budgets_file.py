"""The operator's file of budgets: YAML, read strictly, with the line of every mistake."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from common.values import Usage
from common.yaml_tree import Tree, UnreadableYaml, line_of, plain, read_file_bytes, read_tree

MICROS = 1_000_000
"""Of one unit of the currency."""

_Money = Annotated[Decimal, Field(ge=0, le=1_000_000_000, allow_inf_nan=False)]


class BudgetsFileError(ValueError):
    """The file can't be used; the message has a line `file:line: what` for each mistake."""


class ModelPrice(BaseModel):
    """The prices of a million tokens of prompts (`input`) and of replies (`output`)."""

    model_config = ConfigDict(extra="forbid")

    input: _Money
    output: _Money

    def micros(self, prompt_tokens: int, completion_tokens: int) -> int:
        """Return the price of so many tokens, in millionths of the currency, rounded up."""
        whole = self.input * prompt_tokens + self.output * completion_tokens
        return int(whole.to_integral_value(rounding="ROUND_CEILING"))


class Allowance(BaseModel):
    """The most that may be spent in a day: `tokens`, `money`, or the one that is reached first."""

    model_config = ConfigDict(extra="forbid")

    tokens: Annotated[int, Field(gt=0)] | None = None
    money: Annotated[_Money, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.tokens is None and self.money is None:
            raise ValueError("an allowance needs 'tokens', 'money' or both")

        return self


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is no time zone such as Asia/Shanghai") from error

    return name


class BudgetPlan(BaseModel):
    """The contents of the file.

    Attributes:
        time_zone: a day begins at midnight there.
        prices: by the name of the model.
        each_user: the budget of each user that `users` does not name; None: they have no bound of
            their own.
        groups: the budgets of groups of API keys, each for its members together.
        everybody: the budget of all users together.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    time_zone: Annotated[str, AfterValidator(_known_zone)] = "UTC"
    prices: dict[str, ModelPrice] = Field(default_factory=dict)
    each_user: Allowance | None = None
    users: dict[str, Allowance] = Field(default_factory=dict)
    groups: dict[str, Allowance] = Field(default_factory=dict)
    everybody: Allowance | None = None

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)

    @property
    def allowances(self) -> list[Allowance]:
        """Return all allowances of the file."""
        single = (self.each_user, self.everybody)
        allowed = [allowance for allowance in single if allowance is not None]
        return [*allowed, *self.users.values(), *self.groups.values()]

    @property
    def counts_money(self) -> bool:
        """Tell whether some allowance is in money, so that every model needs its price."""
        return any(allowance.money is not None for allowance in self.allowances)

    def micros(self, model: str, usage: Usage) -> int:
        """Return the price of a call in millionths of the currency; 0 where it is not known."""
        price = self.prices.get(model)
        if price is None:
            return 0

        return price.micros(usage.prompt_tokens, usage.completion_tokens)

    def cost(self, model: str, usage: Usage) -> float | None:
        """Return the price of a call in the currency; None where it is not known."""
        if model not in self.prices:
            return None

        return self.micros(model, usage) / MICROS


def read_budgets(path: Path) -> BudgetPlan:
    """Read the file at `path`.

    Raises:
        BudgetsFileError: it can't be read or is not valid; names every mistake with its line.
    """
    try:
        tree = read_tree(read_file_bytes(path))
    except UnreadableYaml as error:
        raise BudgetsFileError(f"{path}:{error.line}: {error.text}") from error

    try:
        plan = BudgetPlan.model_validate(plain(tree))
    except ValidationError as error:
        raise BudgetsFileError(_mistakes_text(path, tree, error)) from None

    if not plan.allowances:
        advice = "the file allows nothing: it needs each_user, users, groups or everybody"
        raise BudgetsFileError(f"{path}:1: {advice}")

    return plan


def _mistakes_text(path: Path, tree: Tree, error: ValidationError) -> str:
    lines = []
    for mistake in error.errors(include_url=False, include_input=False):
        place = ".".join(map(str, mistake["loc"])) or "the file"
        line = line_of(tree, mistake["loc"], 1)
        lines.append(f"{path}:{line}: {place}: {mistake['msg']}")

    return "\n".join(lines)
