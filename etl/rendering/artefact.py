"""The artefact of a draft: all its files, and the archive that users take along."""

import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from common.text import Lang
from etl.meaning.bound import BoundIntent
from etl.planning.draft_model import Draft
from etl.planning.draft_test import DraftTest
from etl.rendering.dbt_project import dbt_files
from etl.rendering.layout import Layout
from etl.rendering.lineage_files import mermaid, table_lineage
from etl.rendering.plain_sql import File, plain_files
from etl.rendering.plain_tests import plain_test_files
from etl.rendering.readme import readme_text
from etl.schemas.evidence import TestReport
from etl.schemas.requirement import AnalysisResult

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # the earliest that an archive can hold
_READABLE = 0o644 << 16


@dataclass(frozen=True)
class ArtefactFile:
    """A file by its path in the artefact."""

    path: str
    text: str

    @property
    def data(self) -> bytes:
        """Return the text in UTF-8, as it stands in the archive."""
        return self.text.encode()

    @property
    def sha256(self) -> str:
        """Return the hash of its bytes, in hexadecimal digits."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class Artefact:
    """The files of a draft, sorted by path."""

    files: tuple[ArtefactFile, ...]


def make_artefact(
    draft: Draft,
    bound: BoundIntent,
    analysis: AnalysisResult,
    tests: tuple[DraftTest, ...],
    report: TestReport | None,
    lang: Lang,
    clarifications: Sequence[Mapping[str, Any]] = (),
) -> Artefact:
    """Write a draft down as a dbt project and as plain SQL.

    Args:
        clarifications: what was asked and answered: `prompt` and `answer` of each.

    Raises:
        StatementRejected: a model or test is not one query.
    """
    layout = Layout(draft)
    files: list[File] = [
        ("README.md", readme_text(draft, bound, analysis, tests, report, clarifications, lang)),
        *dbt_files(draft, bound, layout, tests, lang),
        *plain_files(draft, layout),
        *plain_test_files(draft, tests, layout),
        *_descriptions(draft, analysis, report),
    ]
    return Artefact(tuple(ArtefactFile(path, text) for path, text in sorted(files)))


def _descriptions(
    draft: Draft, analysis: AnalysisResult, report: TestReport | None
) -> Iterator[File]:
    target = draft.target
    plan = {
        "intent": analysis.intent,
        "plan": draft.plan,
        "target": {
            "node": target.name,
            "model": target.name,
            "relation": target.relation,
            "columns": target.node.columns,
        },
    }
    yield "plan.json", _json(plan)
    yield "lineage.json", _json({"edges": table_lineage(draft)})
    yield "lineage.mmd", mermaid(draft)
    yield "evidence.json", _json(report, by_alias=True)


def _json(content: Any, *, by_alias: bool = False) -> str:
    return to_json(content, indent=2, by_alias=by_alias).decode() + "\n"


def zip_bytes(artefact: Artefact) -> bytes:
    """Return the files as a ZIP archive: the same bytes every time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(artefact.files, key=lambda one: one.path):
            entry = zipfile.ZipInfo(file.path, _FIRST_DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = _READABLE
            entry.create_system = 3  # otherwise it differs between systems
            archive.writestr(entry, file.data)

    return buffer.getvalue()
