"""Times as Citu shows and keeps them: ISO 8601 in UTC, with milliseconds."""

from datetime import UTC, datetime


def now() -> str:
    return utc_text(datetime.now(UTC))


def utc_text(moment: datetime) -> str:
    """Return the text of `moment`, which must be in UTC."""
    return moment.isoformat(timespec="milliseconds")
