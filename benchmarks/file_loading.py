"""What it costs to bring a large file: seconds until its draft and until its rows are loaded, and
the memory of the process that reads.

The rows have ten columns: whole numbers, dates, amounts, percentages, truth values, texts in
Chinese and English. One workbook has a fifth of them, another all that a sheet may have.
"""

import asyncio
import csv
import resource
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import xlsxwriter

from agent.bootstrap import Services, bootstrap
from app_config import Settings
from common.actor import Actor

_NAMES = ("编号", "日期", "城市", "金额", "数量", "占比", "备注", "code", "ok", "客户")
_CITIES = ("北京", "上海", "广州", "深圳", "成都")
_ACTOR = Actor("bench")
_MOST_SHEET_ROWS = 1_048_575  # below the row of names


def run(data_dir: Path, *, rows: int) -> Iterator[str]:
    """Yield the lines of the report.

    Args:
        rows: how many rows the text file has.
    """
    settings = Settings(data_dir=str(data_dir), audit_log="off", max_file_bytes=2**31)
    services = bootstrap(settings)
    text = data_dir / "bench.csv"
    with text.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(_NAMES)
        writer.writerows(_rows(rows))
    yield asyncio.run(_measured(services, text, text.stat().st_size / 1e6, "CSV"))
    for count in (rows // 5, min(rows, _MOST_SHEET_ROWS)):
        book = data_dir / "bench.xlsx"
        _write_book(book, count)
        yield asyncio.run(_measured(services, book, book.stat().st_size / 1e6, "XLSX"))

    services.sources.hold.release()


def _rows(count: int) -> Iterator[list[Any]]:
    first = date(2020, 1, 1)
    for number in range(1, count + 1):
        yield [
            number,
            first + timedelta(days=number % 1500),
            _CITIES[number % len(_CITIES)],
            f"{number % 9973 + 0.25:,.2f}",
            number % 97,
            f"{number % 100}%",
            f"note {number}",
            f"{number % 10000:05d}",
            "是" if number % 3 else "否",
            f"客户{number % 5000}",
        ]


def _write_book(path: Path, rows: int) -> None:
    book = xlsxwriter.Workbook(str(path), {"constant_memory": True})
    sheet = book.add_worksheet()
    day = book.add_format({"num_format": "yyyy-mm-dd"})
    sheet.write_row(0, 0, _NAMES)
    for number, row in enumerate(_rows(rows), 1):
        for place, value in enumerate(row):
            if isinstance(value, date):
                sheet.write_datetime(number, place, value, day)
            else:
                sheet.write(number, place, value)
    book.close()


async def _measured(services: Services, path: Path, size: float, kind: str) -> str:
    """Bring one file, and delete it again; the path is moved."""
    files = services.files
    assert files is not None
    started, cpu = time.perf_counter(), _cpu_s()
    draft = await files.drafted(_ACTOR, path, path.name, "en", "new", None)
    drafted, drafted_cpu = time.perf_counter(), _cpu_s()
    loaded = await files.confirmed(_ACTOR, draft["id"], (), "en")
    ended, ended_cpu = time.perf_counter(), _cpu_s()
    rows = sum(table["rows"] for table in loaded["tables"])
    await files.deleted(_ACTOR, loaded["id"])
    memory = files.peak_bytes / 2**20
    return (
        f"{kind}, {rows:,} rows, {size:.0f} MB: draft {drafted - started:.1f} s "
        f"(CPU {drafted_cpu - cpu:.1f} s), loaded {ended - drafted:.1f} s "
        f"(CPU {ended_cpu - drafted_cpu:.1f} s), at most {memory:.0f} MB"
    )


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
