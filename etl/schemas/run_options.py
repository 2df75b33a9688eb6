"""How a request wants its draft made."""

from pydantic import Field

from etl.schemas.requirement import Materialization
from etl.schemas.strict import StrictModel

MOST_SAMPLE_ROWS = 1_000_000


class EtlOptions(StrictModel):
    """The options of a request beside its intent.

    Attributes:
        interactive: whether the run asks its user; else it answers with what it would ask.
        feedback: whether the run asks for a rating before it ends.
        sample_rows: most rows that are copied of a table; None takes the configured number.
        mutants: whether the tests are tried on broken models.
        materialization: how the target is kept; None takes the intent's, else the plan's.
        time_zone: in which periods are cut; None takes the configured one.
    """

    interactive: bool = True
    feedback: bool = True
    sample_rows: int | None = Field(default=None, ge=1, le=MOST_SAMPLE_ROWS)
    mutants: bool = True
    materialization: Materialization | None = None
    time_zone: str | None = Field(default=None, min_length=1, max_length=64)
