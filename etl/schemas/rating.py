"""What the user says of a draft."""

from common.learning import Rating
from etl.schemas.strict import StrictModel


class DraftFeedback(StrictModel):
    """The user's rating; `modified_sql` maps nodes to SQL that is tested before it counts."""

    rating: Rating
    comment: str | None = None
    modified_sql: dict[str, str] | None = None
