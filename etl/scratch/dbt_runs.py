"""Builds a dbt project in scratch by the program dbt, in a process group of its own.

dbt does not run twice at once in one process, and loads what Citu does not need; so it is a program
beside it, with an environment that holds nothing but what it needs.
"""

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict

from etl.scratch.scratch_build import ScratchBuild

_PATH = "/usr/local/bin:/usr/bin:/bin"
_MOST_OUTPUT = 200  # lines of its log that are looked through for an error
_OPTIONS = (
    *("--profiles-dir", ".", "--project-dir", ".", "--no-use-colors", "--log-format", "json"),
    *("--no-send-anonymous-usage-stats", "--no-partial-parse"),
)


@dataclass(frozen=True)
class DbtResult:
    """The result of a model or test that dbt ran; `name` is the last part of its unique id.

    Attributes:
        status: `success`, `pass`, `fail`, `warn`, `error` or `skipped`.
        failures: rows that break a test.
    """

    name: str
    kind: str
    status: str
    failures: int
    ms: float
    message: str


@dataclass(frozen=True)
class DbtRun:
    """The end of a run: results, or why there are none."""

    results: tuple[DbtResult, ...]
    failure: str | None


async def run_dbt(
    dbt: Path,
    files: Iterable[tuple[str, str]],
    build: ScratchBuild,
    schema: str,
    variables: Mapping[str, str],
) -> DbtRun:
    """Run `dbt build` on a project; cancelling it ends all its processes.

    Args:
        files: paths and texts of the project.
        schema: the schema of the build, for the models.
        variables: the variables of the project, the schemas of its sources among them.
    """
    folder = Path(tempfile.mkdtemp(prefix="citu-dbt-"))
    try:
        for path, text in files:
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")

        command = [str(dbt), "build", *_OPTIONS, "--vars", json.dumps(dict(variables))]
        output = await _run(command, folder, _environment(build, schema, folder))
        return _read_results(folder / "target" / "run_results.json", output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _run(command: list[str], folder: Path, environment: Mapping[str, str]) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = await process.communicate()
        return output
    finally:
        # Children may outlive it, also when it ended by itself.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _environment(build: ScratchBuild, schema: str, folder: Path) -> Mapping[str, str]:
    address = {name: str(value) for name, value in conninfo_to_dict(build.url).items()}
    home = folder / "home"
    home.mkdir()
    return {
        "PATH": _PATH,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "DO_NOT_TRACK": "1",
        "ETL_HOST": address.get("host", "localhost"),
        "ETL_PORT": address.get("port", "5432"),
        "ETL_USER": address.get("user", ""),
        "ETL_PASSWORD": address.get("password", ""),
        "ETL_DBNAME": address.get("dbname", ""),
        "ETL_SCHEMA": schema,
    }


def _read_results(path: Path, output: bytes) -> DbtRun:
    try:
        results = json.loads(path.read_text("utf-8"))["results"]
    except (OSError, ValueError, KeyError):
        return DbtRun((), _failure(output))

    return DbtRun(tuple(_result(one) for one in results), None)


def _result(one: Mapping[str, Any]) -> DbtResult:
    parts = str(one["unique_id"]).split(".")
    return DbtResult(
        name=parts[2] if parts[0] == "test" else parts[-1],
        kind=parts[0],
        status=str(one["status"]),
        failures=int(one.get("failures") or 0),
        ms=round(float(one.get("execution_time") or 0) * 1000, 1),
        message=str(one.get("message") or ""),
    )


def _failure(output: bytes) -> str:
    """Return the last error of dbt's log."""
    message = "dbt said nothing"
    for line in output.decode("utf-8", "replace").splitlines()[-_MOST_OUTPUT:]:
        with suppress(ValueError):
            info = json.loads(line)["info"]
            if info["level"] == "error":
                message = str(info["msg"])

    return message
