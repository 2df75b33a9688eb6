"""Files that mean harm, or are broken: each is refused with a reason or read within bounds, by the
process that reads files, and leaves nothing.
"""

import asyncio
import io
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import xlsxwriter

from common.errors import InvalidRequest
from files.reading.reading_limits import LIMITS, MEGABYTE
from files.worker_process import FileWorker, UploadSource
from tests.support.effort import tries

SMALL = replace(LIMITS, unpacked_bytes=20 * MEGABYTE, file_bytes=20 * MEGABYTE)
SHEET = "xl/worksheets/sheet1.xml"


def _book(formula: str = "=1+1", *, macro: bool = False) -> bytes:
    text = io.BytesIO()
    book = xlsxwriter.Workbook(text)
    sheet = book.add_worksheet()
    sheet.write_row("A1", ["name", "value"])
    sheet.write_row("A2", ["a", 1])
    sheet.write_string("A3", formula)
    sheet.write_formula("B3", formula, None, 7)
    book.close()
    data = text.getvalue()
    return _with(data, {"xl/vbaProject.bin": b"\xd0\xcf macro"}) if macro else data


def _with(archive: bytes, parts: dict[str, bytes]) -> bytes:
    """The archive with some of its parts replaced or added."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(made, "w", 8) as new:
        for name in old.namelist():
            if name not in parts:
                new.writestr(name, old.read(name))
        for name, part in parts.items():
            new.writestr(name, part)
    return made.getvalue()


def _zip(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def _sheet(rows: str, head: str = "") -> bytes:
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>'
    return f'<?xml version="1.0"?>{head}{sheet}'.encode()


def _understated(archive: bytes) -> bytes:
    """The archive with sizes in its directory that are smaller than the truth."""
    data = bytearray(archive)
    place = data.rfind(b"PK\x01\x02")
    struct.pack_into("<I", data, place + 24, 10)
    return bytes(data)


def _hostile() -> Iterator[tuple[str, bytes]]:
    """Names and contents; each must be refused."""
    plain = _book()
    yield "empty.csv", b""
    yield "blank.csv", b"\n\n , ,\n"
    yield "zeros.csv", bytes(10_000)
    yield "wide.csv", b",".join(b"c%d" % n for n in range(10_000)) + b"\n" + b"1," * 9_999 + b"1\n"
    yield "wide_later.csv", b"a,b\n" + b"1," * 5_000 + b"1\n"
    yield "cell.csv", b'a,b\n"' + b"x" * (2 * MEGABYTE) + b'",1\n'
    yield "line.csv", b"x" * (9 * MEGABYTE)
    yield "quote.csv", b'a,b\n"' + b"1,2\n" * 600_000
    yield "open_quote.csv", b'a,b\n1,2\n"z,2\n3,4\n'
    yield "called.xls", b"\n<!DOCTYPE html><html><table><tr><td>a</td></tr></table></html>"
    yield "tree.csv", b'<?xml version="1.0"?><rows><row a="1"/></rows>'
    yield "lines.csv", b'{"a": 1}\n{"a": 2}\n'
    yield "broken_utf16.csv", b"\xff\xfea\0,\0b\0\n\0\x00\xd8"
    yield "marked.csv", b"\xef\xbb\xbfa,b\n\xff\xfe,1\n"
    yield "words.xlsx", b"Hello, this is a letter.\nIt has no rows.\n"
    yield "one_line.xlsx", b"just words, and a comma"
    yield "words.zip", _zip({"a.xlsx": b"words\nof a letter\n"})
    yield "letter.csv", b"{\\rtf1\\ansi a,b\\par 1,2}"
    yield "remark.csv", b"<!-- x -->\n<table><tr><td>a</td></tr></table>"
    yield "old.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    yield "picture.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
    yield "database.csv", b"SQLite format 3\x00" + bytes(range(256)) * 4
    yield "mainframe.csv", "a,b\n1,2\n".encode("cp037")
    yield "document.docx", _zip({"word/document.xml": b"<x/>"})
    yield "halved.xlsx", plain[: len(plain) // 2]
    yield "before.xlsx", b"x" * 100 + plain
    yield "only_a_mark.csv", b"\xef\xbb\xbf"
    yield "old.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    for mark, kind in ((b"%PDF-1.7", "pdf"), (b"\x1f\x8b\x08", "gz"), (b"Rar!\x1a", "rar")):
        yield f"a.{kind}", mark + bytes(50)
    yield "bomb.zip", _zip({"a.csv": b"a,b\n" + b"1,2\n" * 6_000_000})
    yield "many.zip", _zip({f"{n}.csv": b"a\n1\n" for n in range(1_000)})
    yield "bombs.zip", _zip({f"{n}.csv": b"0" * 4 * MEGABYTE for n in range(6)})
    yield "nested.zip", _zip({"a.zip": _zip({"b.csv": b"a,b\n1,2\n"})})
    yield "disguised.zip", _zip({"a.csv": _zip({"b.csv": b"a,b\n1,2\n"})})
    yield "open.ods", _zip({"mimetype": b"x", "content.xml": b"<x/>"})
    yield "binary.xlsb", _zip({"xl/workbook.bin": b"x"})
    yield "program.zip", _zip({"a.exe": b"MZ"})
    yield "none.zip", _zip({})
    yield "understated.zip", _understated(_zip({"a.csv": b"a,b\n" + b"1,2\n" * 1_000}))
    yield "bomb.xlsx", _with(plain, {SHEET: _sheet(" " * 24 * MEGABYTE)})
    yield "parts.xlsx", _with(plain, {f"xl/media/{n}.png": b"x" for n in range(500)})
    first = '<row r="1"><c r="A1"><v>1</v></c>'
    far = f'{first}</row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    yield "far.xlsx", _with(plain, {SHEET: _sheet(far)})
    wide = f'{first}<c r="XFD1"><v>1</v></c></row>'
    yield "wide.xlsx", _with(plain, {SHEET: _sheet(wide)})
    yield "no_sheet.xlsx", _with(plain, {SHEET: b""})
    yield "no_workbook.xlsx", _with(plain, {"xl/workbook.xml": b"<workbook"})
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    head = f'<!DOCTYPE x [<!ENTITY l0 "ha">{laughs}]>'
    entity = '<row r="1"><c r="A1" t="inlineStr"><is><t>&l9;</t></is></c></row>'
    yield "laughs.xlsx", _with(plain, {SHEET: _sheet(entity, head)})
    outside = '<!DOCTYPE x [<!ENTITY l9 SYSTEM "file:///etc/passwd">]>'
    yield "outside.xlsx", _with(plain, {SHEET: _sheet(entity, outside)})
    for kind in ("zzz", "s", "b"):  # no such type, no such shared text, neither true nor false
        odd = f'{first}<c r="B1" t="{kind}"><v>999</v></c></row>'
        yield f"type_{kind}.xlsx", _with(plain, {SHEET: _sheet(odd)})
    yield "deep.xlsx", _with(plain, {SHEET: _sheet("<a>" * 200_000)})


def _broken() -> Iterator[tuple[str, bytes]]:
    """The same every time: archives and texts that were cut off, or have wrong bytes."""
    chance = random.Random(7)
    sources = {
        "xlsx": _book(),
        "zip": _zip({"a.csv": b"a,b\n1,2\n" * 50, "b.tsv": b"x\ty\n1\t2\n"}),
        "csv": "区域,金额\n北京,1\n上海,2\n".encode("gbk") * 3,
    }
    for number in range(tries(6)):
        for kind, content in sources.items():
            data = bytearray(content)
            if number % 2:
                del data[chance.randrange(1, len(data)) :]
            else:
                for _ in range(1 + number // 6):
                    data[chance.randrange(len(data))] = chance.randrange(256)
            yield f"{number}.{kind}", bytes(data)


def _tamed() -> Iterator[tuple[str, bytes, str]]:
    """Names and contents that are read, and what their first cell then is."""
    yield "formula.csv", b"a,b\n\"=cmd|'/c calc'!A1\",1\n", "=cmd|'/c calc'!A1"
    yield "formula.xlsx", _book('=HYPERLINK("http://x")'), "a"
    yield "macro.xlsm", _book(macro=True), "a"
    yield "control.csv", b"a,b\nx\x01\x02y,1\n", "xy"
    yield "nul.csv", b"a,b\nx" + b"y" * 3_000 + b"\x00,1\n", "xyyy"
    yield "path.zip", _zip({"../../../../tmp/evil.csv": b"a,b\nz,1\n"}), "z"
    yield "sql.csv", b"a,b\n'; DROP TABLE x; --,1\n", "'; DROP TABLE x; --"
    yield "markup.csv", b"a,b\n<script>alert(1)</script>,1\n", "<script>"
    yield "text_called.xlsx", b"a;b\nx;1\ny;2\n", "x"
    yield "gbk_called.xls", "名称\t数量\n甲\t1\n乙\t2\n".encode("gbk"), "甲"
    yield "workbook_called.csv", _book(), "a"
    yield "in_an_archive.zip", _zip({"a.csv": _book()}), "a"
    yield "separator.csv", b"sep=;\na;b\nx;2\n", "x"
    yield "old_mac.csv", b"a,b\rx,2\ry,4\r", "x"
    yield "utf32.csv", "a,b\nx,2\n".encode("utf-32"), "x"
    yield "further_bytes.xlsx", _book() + b"x" * 1000, "a"
    yield "gbk_called_utf8.csv", "名称,b\n北京,1\n".encode("gbk"), "北京"


@pytest.fixture
def draft(tmp_path: Path) -> Callable[[list[tuple[str, bytes]]], list[object]]:
    """Drafts files, a few at once; gives the first cell of each, or why it was refused."""
    worker = FileWorker(tmp_path / "work", timeout_s=120, limits=SMALL)

    async def one(number: int, name: str, content: bytes) -> object:
        path = tmp_path / f"upload{number}"
        path.write_bytes(content)
        try:
            (found, *_) = await worker.draft(UploadSource(path, name, {}))
        except InvalidRequest as error:
            return error
        return "".join(found["columns"][0]["examples"][:1])

    async def all_of(files: list[tuple[str, bytes]]) -> list[object]:
        found = await asyncio.gather(*(one(n, *file) for n, file in enumerate(files)))
        assert list((tmp_path / "work").iterdir()) == []
        return list(found)

    return lambda files: asyncio.run(all_of(files))


def test_hostile_files_are_refused_with_a_reason(
    draft: Callable[[list[tuple[str, bytes]]], list[object]],
) -> None:
    files = list(_hostile())
    for (name, _), found in zip(files, draft(files), strict=True):
        assert isinstance(found, InvalidRequest), (name, found)
        assert found.field == "file"
        assert len(found.text.zh) > 5
        assert "Traceback" not in found.text.en


def test_what_looks_harmful_is_text_and_nothing_else(
    draft: Callable[[list[tuple[str, bytes]]], list[object]], tmp_path: Path
) -> None:
    files = list(_tamed())
    found = draft([(name, content) for name, content, _ in files])
    for (name, _, expected), first in zip(files, found, strict=True):
        assert isinstance(first, str), (name, first)
        assert first.startswith(expected), name
    assert not Path("/tmp/evil.csv").exists()
    assert not list(tmp_path.rglob("evil.csv"))


@pytest.mark.slow
def test_broken_files_are_read_or_refused(
    draft: Callable[[list[tuple[str, bytes]]], list[object]],
) -> None:
    files = list(_broken())
    for (name, _), found in zip(files, draft(files), strict=True):
        assert isinstance(found, str | InvalidRequest), name
