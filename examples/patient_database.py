"""A recovery strategy: what fails because a database is away for a moment is asked once more, and
a statement that took too long is not.

RECOVERY_STRATEGIES=examples.patient_database:patient_database
"""

from agent.extensions.points import FailedCall, Provided, Recovery

_PAUSE_S = 0.5
_TOO_SLOW = (
    "Don't repeat this statement: count or add up fewer rows, for example of one month, "
    "and say in the answer what was left out."
)


class PatientDatabase:
    """Implements `RecoveryStrategy`."""

    async def recover(self, failed: FailedCall) -> Recovery | None:
        """Repeat a call once whose database was away; advise where a statement was too slow."""
        if failed.error_type == "query_timeout":
            return Recovery(advice=_TOO_SLOW)
        if failed.error_type == "database_unavailable" and failed.attempt == 1:
            return Recovery(is_retried=True, pause_s=_PAUSE_S)

        return None


def patient_database(_provided: Provided) -> PatientDatabase:
    """Return the strategy; `RECOVERY_STRATEGIES` names this function."""
    return PatientDatabase()
