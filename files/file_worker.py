"""Reads and loads files in a process of its own: `python -m files.file_worker`, told on stdin.

A file may be made to take all memory or time there is. Here that ends one process, by limits that
it sets itself, and never the service; nor do files that are read slow down anybody's answers.

It writes lines of JSON: `{"rows": n}` while it loads, and at last `{"done": …}`, or `{"refused":
[zh, en]}`.
"""

import json
import re
import resource
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common.text import Text
from files.loading.load_plan import plan_of
from files.reading.reading_limits import ReadingLimits
from files.reading.sheet_drafts import ReadingOptions, RowProblem, SheetDraft, sheet_draft
from files.reading.unreadable import UnreadableFile
from files.reading.upload_reading import FoundSheet, TextOptions, UploadedFile

_EMPTY = ("文件里没有数据。", "The file holds no data.")
_MEMORY = ("文件太大或太复杂，无法读取。", "The file is too large or too intricate to be read.")


def main() -> int:
    """Do what stdin says; return 0 unless it can't even be said why not."""
    task = json.loads(sys.stdin.read())
    limit = int(task["memory_bytes"])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    seconds = int(task["cpu_s"])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        done = _DO[task["do"]](task)
        _send_line(done=done, peak_bytes=_peak_bytes())
    except UnreadableFile as error:
        _send_line(refused=error.text)
    except (MemoryError, RecursionError, OverflowError):
        _send_line(refused=_MEMORY)
    except _LoadFailed as failed:
        _send_line(failed=failed.sqlstate)

    return 0


class _LoadFailed(Exception):
    """The database did not take what was loaded; it said why on stderr."""

    def __init__(self, sqlstate: str) -> None:
        self.sqlstate = sqlstate


def _peak_bytes() -> int:
    """Return the most memory that this process has had; 0 where the system does not say."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0

    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    return 1024 * int(match[1]) if match else 0


def _send_line(**content: Any) -> None:
    sys.stdout.write(json.dumps(content, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _upload(task: Mapping[str, Any], limits: ReadingLimits) -> UploadedFile:
    options = {}
    for key, one in task["options"].items():
        options[key] = TextOptions(one.get("encoding"), one.get("delimiter"))

    return UploadedFile(Path(task["path"]), task["name"], Path(task["folder"]), limits, options)


def _draft(task: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the drafts of all sheets that are not empty."""
    limits = ReadingLimits(**task["limits"])
    drafts = []
    for found_sheet in _upload(task, limits).sheets():
        corrections = task["options"].get(found_sheet.key, {})
        types = {int(place): type_ for place, type_ in corrections.get("types", {}).items()}
        options = ReadingOptions(
            corrections.get("header_row"),
            corrections.get("header_rows"),
            keeps_totals=bool(corrections.get("keeps_totals")),
            types=types,
        )
        draft = sheet_draft(found_sheet.sheet, options, limits)
        if draft is not None:
            drafts.append(_draft_json(found_sheet, draft, keeps_totals=options.keeps_totals))
        if len(drafts) > limits.tables:
            raise UnreadableFile(
                Text(f"超过 {limits.tables} 张表。", f"There are more than {limits.tables} tables.")
            )

    if not drafts:
        raise UnreadableFile(Text(*_EMPTY))

    return drafts


def _draft_json(
    found_sheet: FoundSheet, draft: SheetDraft, *, keeps_totals: bool
) -> dict[str, Any]:
    layout = draft.layout
    return {
        "sheet": found_sheet.key,
        "title": found_sheet.title,
        "encoding": found_sheet.encoding,
        "delimiter": found_sheet.delimiter,
        "header_row": layout.header_row,
        "header_rows": layout.header_rows,
        "header_reason": layout.reason,
        "first_row": layout.first_row,
        "titles": layout.titles[:5],
        "keeps_totals": keeps_totals,
        "rows": draft.rows,
        "problems": _problems(draft.problems),
        "columns": [
            {**asdict(column), "problems": _problems(column.problems)} for column in draft.columns
        ],
    }


def _problems(problems: tuple[RowProblem, ...]) -> list[dict[str, Any]]:
    return [asdict(problem) for problem in problems]


def _load(task: Mapping[str, Any]) -> list[dict[str, Any]]:
    # Here, since the driver takes longer to import than most files take to be read.
    import psycopg

    from files.loading.table_loading import load

    limits = ReadingLimits(**task["limits"])
    sheets = {found_sheet.key: found_sheet.sheet for found_sheet in _upload(task, limits).sheets()}
    try:
        loaded = load(plan_of(task["plan"]), sheets, lambda rows: _send_line(rows=rows))
    except psycopg.Error as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        raise _LoadFailed(error.sqlstate or "") from error

    return [asdict(table) for table in loaded]


_DO = {"draft": _draft, "load": _load}


if __name__ == "__main__":
    sys.exit(main())
