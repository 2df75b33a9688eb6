"""How drafts are built: limits, and the program dbt."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_PROJECT = Path(__file__).resolve().parents[2]
_OWN_DBT = _PROJECT / ".venv-etl" / "bin" / "dbt"


class ScratchSettings(Protocol):
    """The settings of builds; `app_config.Settings` has them."""

    @property
    def etl_builds(self) -> int: ...  # noqa: D102 - app_config says what each is
    @property
    def etl_sample_rows(self) -> int: ...  # noqa: D102
    @property
    def etl_dbt(self) -> str: ...  # noqa: D102


@dataclass(frozen=True)
class ScratchOptions:
    """Limits of a build in the scratch database.

    Attributes:
        builds: most at once in this process.
        sample_rows: most rows that are copied of one table.
        dbt: the program that builds; None: plain SQL does.
        statement_timeout_s, lock_timeout_s: seconds for one statement, and for its locks.
        work_mem: memory of one sort or hash, as PostgreSQL writes it.
        kept_s: age at which schemas that a killed process has left are dropped.
    """

    builds: int = 2
    sample_rows: int = 20_000
    dbt: Path | None = None
    statement_timeout_s: float = 60.0
    lock_timeout_s: float = 5.0
    work_mem: str = "32MB"
    kept_s: float = 3600.0


def scratch_options(settings: ScratchSettings) -> ScratchOptions:
    """Return the options that the settings describe."""
    return ScratchOptions(
        builds=settings.etl_builds,
        sample_rows=settings.etl_sample_rows,
        dbt=_dbt(settings.etl_dbt),
    )


def _dbt(configured: str) -> Path | None:
    """Return the program that the setting names, else the one that `make etl` installed."""
    if configured:
        program = shutil.which(Path(configured).expanduser())
        return Path(program) if program else None

    if _OWN_DBT.exists():
        return _OWN_DBT

    return None
