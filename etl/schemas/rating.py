"""What the user says of a draft."""

from typing import Literal

from etl.schemas.strict import StrictModel


class DraftFeedback(StrictModel):
    """The user's rating; `modified_sql` maps nodes to SQL that is tested before it counts."""

    rating: Literal["satisfied", "unsatisfied", "need_modification", "skip"]
    comment: str | None = None
    modified_sql: dict[str, str] | None = None
