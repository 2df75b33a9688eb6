"""Times as Citu shows and keeps them: ISO 8601 in UTC, with milliseconds."""

from datetime import UTC, datetime


def now() -> str:
    return written(datetime.now(UTC))


def written(moment: datetime) -> str:
    """Return the text of `moment`, which must be in UTC."""
    return moment.isoformat(timespec="milliseconds")
