"""Artefacts in folders, and what runs them: psql and dbt."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from etl.rendering.artefact import Artefact

ROOT = Path(__file__).resolve().parents[2]
_OWN_DBT = ROOT / ".venv-etl" / "bin" / "dbt"


def write_artefact(artefact: Artefact, folder: Path) -> None:
    """Write all files below the folder."""
    for file in artefact.files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)


def psql_path() -> str | None:
    """Return an installed psql."""
    return shutil.which("psql")


def dbt_path() -> str | None:
    """Return the dbt that `make etl` installs, or the one of ETL_DBT."""
    given = os.environ.get("ETL_DBT")
    if given:
        return given
    return str(_OWN_DBT) if _OWN_DBT.exists() else None


def run_psql(psql: str, url: str, schema: str, file: Path) -> "subprocess.CompletedProcess[str]":
    """Run a file of SQL in a schema; the output is rows without headings."""
    environment = os.environ | {"PGOPTIONS": f"-c search_path={schema}"}
    return subprocess.run(
        [psql, "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "-d", url, "-f", str(file)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def run_dbt(
    dbt: str, folder: Path, url: str, schema: str, *arguments: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command of dbt in the folder of a project."""
    options = ["--profiles-dir", ".", "--no-use-colors"]
    return subprocess.run(
        [dbt, *arguments, *options],
        cwd=folder,
        env=_connection(url, schema, folder),
        capture_output=True,
        text=True,
        check=False,
    )


def _connection(url: str, schema: str, folder: Path) -> Mapping[str, str]:
    named = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    home = {"PATH": os.environ["PATH"], "HOME": str(folder), "DO_NOT_TRACK": "1"}
    return home | {
        "ETL_HOST": named["host"],
        "ETL_PORT": named.get("port", "5432"),
        "ETL_USER": named["user"],
        "ETL_PASSWORD": named.get("password", ""),
        "ETL_DBNAME": named["dbname"],
        "ETL_SCHEMA": schema,
    }
