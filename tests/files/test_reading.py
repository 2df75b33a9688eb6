"""What files hold is guessed as people mean it: encodings, delimiters, headers, types, names."""

import codecs
import csv
import io
import zipfile
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import xlsxwriter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from python_calamine import CalamineWorkbook

from files.reading import archives, divided_workbooks, workbooks
from files.reading.copying import confirmed_column, copied
from files.reading.reading_limits import LIMITS
from files.reading.sheet_drafts import DataRows, ReadingOptions, SheetDraft, sheet_draft
from files.reading.sql_names import distinct_names, is_sql_name, sql_name
from files.reading.unreadable import UnreadableFile
from files.reading.upload_reading import FoundSheet, TextOptions, UploadedFile
from tests.support.effort import tries


def _found(path: Path, **options: TextOptions) -> list[FoundSheet]:
    folder = path.parent / "unpacked"
    folder.mkdir(exist_ok=True)
    return list(UploadedFile(path, path.name, folder, LIMITS, options).sheets())


def _draft(path: Path, options: ReadingOptions | None = None) -> SheetDraft:
    (found, *_) = _found(path)
    draft = sheet_draft(found.sheet, options or ReadingOptions(), LIMITS)
    assert draft is not None
    return draft


def _text(folder: Path, text: str, encoding: str = "utf-8", name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def _typed(draft: SheetDraft) -> dict[str, str]:
    return {column.name: column.type for column in draft.columns}


def _rows(path: Path) -> list[list[str]]:
    """The rows as COPY gets them, split again."""
    (found, *_) = _found(path)
    draft = sheet_draft(found.sheet, ReadingOptions(), LIMITS)
    assert draft is not None
    columns = []
    for place, column in enumerate(draft.columns):
        columns.append(confirmed_column(place, column.forms))
    data = DataRows(found.sheet, draft.layout.first_row, keeps_totals=False)
    text = b"".join(lines for _, lines in copied(data, columns)).decode()
    return [line.split("\t") for line in text.splitlines()]


@pytest.mark.parametrize(
    ("encoding", "mark", "name"),
    [
        ("utf-8", b"", "utf-8"),
        ("utf-8", codecs.BOM_UTF8, "utf-8"),
        ("gbk", b"", "gb18030"),
        ("gb18030", b"", "gb18030"),
        ("big5", b"", "big5"),
        ("utf-16-le", codecs.BOM_UTF16_LE, "utf-16"),
        ("utf-16-be", codecs.BOM_UTF16_BE, "utf-16"),
        ("utf-16-le", b"", "utf-16"),
    ],
)
def test_encodings_are_found(tmp_path: Path, encoding: str, mark: bytes, name: str) -> None:
    texts = {
        "big5": "門市,營業額\n臺北,1200\n高雄,300\n",
        "gb18030": "门店,营业额€\n北京,1200\n上海㐂,300\n上海,5\n广州,7\n",
    }
    text = texts.get(encoding, "store,门店,营业额\nab12,北京,1200\ncd34,上海,300\n")
    path = tmp_path / "a.csv"
    path.write_bytes(mark + text.encode(encoding))
    (found,) = _found(path)
    assert found.encoding is not None
    assert found.encoding[0] == name
    draft = sheet_draft(found.sheet, ReadingOptions(), LIMITS)
    assert draft is not None
    assert [column.title for column in draft.columns] == text.splitlines()[0].split(",")


def test_an_encoding_that_is_named_wrongly_is_refused_with_the_place(tmp_path: Path) -> None:
    path = _text(tmp_path, "城市,人口\n北京,2\n", "gbk")
    with pytest.raises(UnreadableFile, match=r"The file is not utf-8: byte 1 .* gb18030"):
        _found(path, **{"0": TextOptions(encoding="utf-8")})


@pytest.mark.parametrize("sign", [",", "\t", ";", "|"])
def test_delimiters_are_found(tmp_path: Path, sign: str) -> None:
    rows = [["name", "city, state", "n"], ["Ann", "Rome; IT", "1"], ["Bob", "Oslo", "2"]]
    text = io.StringIO()
    csv.writer(text, delimiter=sign).writerows(rows)
    draft = _draft(_text(tmp_path, text.getvalue()))
    assert _typed(draft) == {"name": "text", "city_state": "text", "n": "integer"}
    assert draft.rows == 2


TYPES = (
    ("integer", ["1", "-20", "+3", "9007199254740993"], ["1", "-20", "+3", "9007199254740993"]),
    ("integer", ["1,200", "3", "12，000"], ["1200", "3", "12000"]),
    ("numeric", ["1.5", "-2", ".5"], ["1.5", "-2", ".5"]),
    ("numeric", ["¥1,200.50", "(3.00)", "$ -7", "12元"], ["1200.50", "-3.00", "-7", "12"]),
    ("percentage", ["12.5%", "-3 %", "100％"], ["12.5e-2", "-3e-2", "100e-2"]),
    ("date", ["2024-01-05", "2024/2/29", "2024年12月31日"], None),
    ("date", ["31/12/2024", "1/2/2024"], ["2024-12-31", "2024-02-01"]),
    ("date", ["12/31/2024", "1/2/2024"], ["2024-12-31", "2024-01-02"]),
    ("date", ["5 Jan 2024", "March 7, 2024"], ["2024-01-05", "2024-03-07"]),
    ("date", ["2024年1月", "2024年12月"], ["2024-01-01", "2024-12-01"]),
    ("timestamp", ["2024-01-05 10:00", "2024/1/5 9:30:15"], None),
    ("timestamptz", ["2024-01-05T10:00:00Z", "2024-01-05 10:00+08:00"], None),
    ("boolean", ["是", "否", "是"], ["t", "f", "t"]),
    ("boolean", ["true", "FALSE"], ["true", "FALSE"]),
    ("text", ["007", "012"], ["007", "012"]),
    ("text", ["2024-02-30", "2024-01-01"], ["2024-02-30", "2024-01-01"]),
    ("numeric", ["12345678901234567890", "1"], ["12345678901234567890", "1"]),
    ("text", ["110101199001011234", "11010119900101123X"], None),
)


@pytest.mark.parametrize(("type_", "written", "read"), TYPES)
def test_types_are_guessed_and_values_converted(
    tmp_path: Path, type_: str, written: Sequence[str], read: Sequence[str] | None
) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["label", "v"], *[["x", value] for value in written]])
    assert _typed(_draft(path))["v"] == type_
    if read is not None:
        assert [row[1] for row in _rows(path)] == list(read)


def test_eight_digits_are_dates_only_where_the_name_says_so(tmp_path: Path) -> None:
    draft = _draft(_text(tmp_path, "日期,编号\n20240105,20240105\n20240229,20240229\n"))
    assert _typed(draft) == {"日期": "date", "编号": "integer"}


def test_titles_empty_rows_and_a_last_row_of_totals_are_left_out(tmp_path: Path) -> None:
    text = "2024年销售报表,,\n制表人：王,,\n\n地区,金额,占比\n\n北京,1,50%\n上海,1,50%\n"
    text += ",,\n合计,2,100%\n"
    draft = _draft(_text(tmp_path, text))
    assert draft.layout.header_row == 4
    assert draft.layout.titles == ("2024年销售报表", "制表人：王")
    assert _typed(draft) == {"地区": "text", "金额": "integer", "占比": "percentage"}
    assert draft.rows == 2
    assert draft.total_row == 9
    kept = _draft(tmp_path / "data.csv", ReadingOptions(keeps_totals=True))
    assert kept.rows == 3


@pytest.mark.parametrize(
    ("text", "header_row", "names"),
    [
        ("1,2\n3,4\n", 0, ["column_1", "column_2"]),
        ("a,b\nc,d\ne,f\n", 1, ["a", "b"]),
        ("x,y\nz,y\nx,w\n", 0, ["column_1", "column_2"]),
        ("地区,2023,2024\n北京,1,2\n上海,3,4\n", 1, ["地区", "column_2023", "column_2024"]),
        ("name,name,Name\na,1,2\n", 1, ["name", "name_2", "name_3"]),
        ("id\n1\n2\n", 1, ["id"]),
        (
            ",甲方,,乙方,\n项目,数量,金额,数量,金额\nA,1,2,3,4\n",
            1,
            ["项目", "甲方_数量", "甲方_金额", "乙方_数量", "乙方_金额"],
        ),
    ],
)
def test_headers_are_found(tmp_path: Path, text: str, header_row: int, names: list[str]) -> None:
    draft = _draft(_text(tmp_path, text))
    assert draft.layout.header_row == header_row
    assert [column.name for column in draft.columns] == names


def test_a_caller_can_say_where_the_header_is(tmp_path: Path) -> None:
    path = _text(tmp_path, "1,2\na,b\n3,4\n")
    draft = _draft(path, ReadingOptions(header_row=2))
    assert [column.name for column in draft.columns] == ["a", "b"]
    assert draft.rows == 1
    assert _draft(path, ReadingOptions(header_row=0)).rows == 3


def test_the_values_that_keep_a_column_from_a_type_are_named(tmp_path: Path) -> None:
    lines = [f"{number},{number}" for number in range(1, 100)]
    lines[41] = "42,unknown"
    path = _text(tmp_path, "id,amount\n" + "\n".join(lines) + "\n")
    (_, amount) = _draft(path).columns
    assert amount.type == "text"
    (problem,) = amount.problems
    assert (problem.count, problem.rows) == (1, (43,))
    assert "integer" in problem.text.en
    (_, told) = _draft(path, ReadingOptions(types={1: "integer"})).columns
    assert told.type == "integer"
    assert told.problems[0].text.en == "values that are no integer would be left empty"
    (found,) = _found(path)
    column = confirmed_column(1, told.forms)
    data = DataRows(found.sheet, 2, keeps_totals=False)
    lines_read = b"".join(text for _, text in copied(data, [column])).decode().splitlines()
    assert lines_read[41] == r"\N"
    assert (column.left_out.count, column.left_out.rows) == (1, [43])


def test_markers_of_no_value_are_empty_among_numbers_and_stay_in_texts(tmp_path: Path) -> None:
    path = _text(tmp_path, "n,t\n1,N/A\n-,无\n#DIV/0!,x\n3,\n")
    assert _typed(_draft(path)) == {"n": "integer", "t": "text"}
    assert _rows(path) == [["1", "N/A"], [r"\N", "无"], [r"\N", "x"], ["3", r"\N"]]


class _CountedWorkbook:
    """A workbook that notes which sheets are read."""

    read: ClassVar[list[str]] = []

    def __init__(self, path: Path) -> None:
        self._workbook = CalamineWorkbook.from_path(path)
        self.sheets_metadata = self._workbook.sheets_metadata

    def get_sheet_by_name(self, name: str) -> Any:
        self.read.append(name)
        return self._workbook.get_sheet_by_name(name)


def test_workbooks_are_read_with_several_sheets_merged_titles_and_cached_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sheet is read once, which takes most of the time."""
    monkeypatch.setattr(_CountedWorkbook, "read", [])
    monkeypatch.setattr(workbooks, "CalamineWorkbook", SimpleNamespace(from_path=_CountedWorkbook))
    path = tmp_path / "book.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sales = book.add_worksheet("销售")
    days = book.add_format({"num_format": "yyyy-mm-dd"})
    sales.merge_range("B2:E2", "一季度报表")
    sales.merge_range("C3:D3", "金额")
    sales.write_row("B3", ["门店"])
    sales.write_row("B4", ["", "计划", "实际", "日期"])
    for number, row in enumerate((["北京", 1.5, 2], ["上海", 2.5, 3]), 4):
        sales.write_row(number, 1, row)
        sales.write_datetime(number, 4, datetime(2024, 1, number), days)
    other = book.add_worksheet("other")
    other.write_row("A1", ["code", "total"])
    other.write_string("A2", "0012")
    other.write_formula("B2", "=1+1", None, 2)
    book.add_worksheet("empty")
    book.add_worksheet("hidden").hide()
    book.close()
    found = _found(path)
    assert [one.title for one in found] == ["销售", "other", "empty"]
    drafts = [sheet_draft(one.sheet, ReadingOptions(), LIMITS) for one in found]
    assert _CountedWorkbook.read == ["销售", "other", "empty"]
    assert drafts[0] is not None
    assert drafts[1] is not None
    assert drafts[2] is None
    assert _typed(drafts[0]) == {
        "门店": "text",
        "金额_计划": "numeric",
        "金额_实际": "integer",
        "日期": "date",
    }
    assert drafts[0].layout.titles == ("一季度报表",)
    assert drafts[0].layout.first_row == 5
    assert _typed(drafts[1]) == {"code": "text", "total": "integer"}
    assert drafts[1].columns[1].examples == ("2",)


def test_cells_merged_downwards_are_the_values_of_each_of_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet()
    sheet.write_row("A1", ["区域", "城市", "补贴"])
    sheet.merge_range("A2:A3", "华北")
    sheet.merge_range("C2:C3", 100)
    sheet.write_column("B2", ["北京", "天津", "上海"])
    sheet.write("A4", "华东")
    sheet.write("C4", 5)
    book.close()
    # What the rows have together counts once.
    assert _rows(path) == [["华北", "北京", "100"], ["华北", "天津", r"\N"], ["华东", "上海", "5"]]
    assert [(one.count, one.rows) for one in _draft(path).problems] == [(1, (3,)), (1, (3,))]


def _as_read(path: Path) -> list[Any]:
    return [(one.title, one.sheet.merged, list(one.sheet.rows())) for one in _found(path)]


def test_large_sheets_are_read_by_parts_as_they_are_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.xlsx"
    book = xlsxwriter.Workbook(str(path))
    large = book.add_worksheet("large")
    days = book.add_format({"num_format": "yyyy-mm-dd"})
    large.merge_range("C2:E2", "报表")
    for number in (*range(2, 40), *range(60, 80)):
        large.write_row(number, 2 + number % 2, [f"名 {number}", number / 4, number % 3 == 0])
        large.write_datetime(number, 6, datetime(2024, 1, 1 + number % 28), days)
    book.add_worksheet("empty")
    book.add_worksheet("small").write_row("A1", ["code", "0012"])
    book.close()
    whole = _as_read(path)
    assert [len(rows) for _, _, rows in whole] == [80, 0, 1]

    read: list[str] = []
    monkeypatch.setattr(_CountedWorkbook, "read", read)
    monkeypatch.setattr(workbooks, "CalamineWorkbook", SimpleNamespace(from_path=_CountedWorkbook))
    monkeypatch.setattr(divided_workbooks, "_LARGE", 900)
    for size in range(896, 960, 7):  # of what is unpacked at once, which ends anywhere in a tag
        monkeypatch.setattr(archives, "_PIECE", size)
        read.clear()
        parts = _as_read(path)
        assert len(set(read)) > 6
        for (title, merged, rows), (title_whole, merged_whole, rows_whole) in zip(
            parts, whole, strict=True
        ):
            assert (title, merged) == (title_whole, merged_whole)
            assert [_cut(row) for row in rows] == [_cut(row) for row in rows_whole]


def _cut(row: list[str]) -> list[str]:
    """The row without empty cells at its end."""
    return row[: max((place for place, cell in enumerate(row, 1) if cell), default=0)]


def test_archives_give_their_files_without_their_paths(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../out.csv", "a,b\n1,2\n")
        archive.writestr("/etc/二.tsv", "a\tb\nx\t2\n")
        archive.writestr("__MACOSX/._out.csv", b"\0\0")
    found = _found(path)
    assert [one.title for one in found] == ["out", "二"]
    assert sorted(one.name for one in (tmp_path / "unpacked").iterdir()) == ["0.csv", "1.tsv"]
    assert not (tmp_path.parent / "out.csv").exists()


NAMES = st.text(st.characters(codec="utf-8"), max_size=80)


@given(st.lists(NAMES, max_size=8))
@settings(max_examples=tries(30))
def test_names_become_distinct_names_of_sql(written: list[str]) -> None:
    names = distinct_names(written, "column")
    assert len(set(names)) == len(written)
    for name in names:
        assert len(name.encode()) <= 63
        assert is_sql_name(sql_name(name, "column"))


VALUES: dict[str, Any] = {
    "integer": st.integers(-(10**17), 10**17),
    "numeric": st.decimals(-(10**9), 10**9, places=2),
    "date": st.dates(date(1900, 1, 1), date(2199, 12, 31)),
    "text": st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=12),
}


@given(data=st.data(), kinds=st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5))
@settings(max_examples=tries(24), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_was_written_comes_back(tmp_path: Path, data: st.DataObject, kinds: list[str]) -> None:
    """Rows that Python writes as CSV arrive as they were, whatever stands in their texts."""
    count = data.draw(st.integers(1, 6))
    rows = [["key", *(data.draw(VALUES[kind]) for kind in kinds)] for _ in range(count)]
    names = ["label", *(f"name of {number} {kind}" for number, kind in enumerate(kinds))]
    path = tmp_path / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([names, *rows])
    options = ReadingOptions(
        header_row=1, keeps_totals=True, types=dict.fromkeys(range(len(names)), "text")
    )
    (found,) = _found(path)
    draft = sheet_draft(found.sheet, options, LIMITS)
    assert draft is not None
    columns = [confirmed_column(place, ()) for place in range(len(names))]
    lines = b"".join(
        text for _, text in copied(DataRows(found.sheet, 2, keeps_totals=True), columns)
    )
    read = [line.split("\t") for line in lines.decode().split("\n")[:-1]]
    assert read == [[_copied(str(value)) for value in row] for row in rows]


def _copied(value: str) -> str:
    tidy = value.strip(" \t\r\n\u3000\xa0").replace("\ufeff", "").replace("\x7f", "")
    tidy = tidy.replace("\ufffe", "").replace("\uffff", "").strip(" \t\r\n\u3000\xa0")
    return tidy.replace("\\", "\\\\") or r"\N"
