"""Times as Citu shows and keeps them: ISO 8601 in UTC, with milliseconds."""

from datetime import UTC, datetime


def now() -> str:
    """This moment."""
    return written(datetime.now(UTC))


def written(moment: datetime) -> str:
    """`moment`, which has to be in UTC."""
    return moment.isoformat(timespec="milliseconds")
