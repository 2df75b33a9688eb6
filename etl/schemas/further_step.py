"""The last step of a request where no operation of an intent can say it."""

from pydantic import Field

from etl.schemas.strict import StrictModel


class FurtherColumn(StrictModel):
    """A column that the step gives; `type` is PostgreSQL's."""

    name: str
    type: str
    description: str | None = None


class FurtherStep(StrictModel):
    """One query over the table that the intent means; a model writes it, and only tests judge it.

    Attributes:
        table_name: the name of the table that the request wants; None: nobody named it.
        grain: columns that no two rows have the same values in; empty: there is one row at most.
    """

    description: str
    table_name: str | None = None
    columns: list[FurtherColumn] = Field(min_length=1)
    grain: list[str] = Field(default_factory=list)
