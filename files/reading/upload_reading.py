"""An upload as sheets: one text file, a workbook's sheets, or the files of an archive."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from common.text import Text
from files.reading.archives import (
    is_archive,
    is_workbook,
    nested_archive,
    unpacked,
)
from files.reading.delimited import (
    DELIMITERS,
    DelimitedSheet,
    Delimiter,
    check_markup,
    delimiter_of,
    is_clearly_delimited,
)
from files.reading.encodings import encoding_of, named_encoding
from files.reading.reading_limits import ReadingLimits
from files.reading.sheets import Sheet, storable
from files.reading.unreadable import refusal
from files.reading.workbooks import workbook_sheets

_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
_OTHERS = {
    b"%PDF": "PDF",
    b"\x1f\x8b": "gzip",
    b"7z\xbc\xaf": "7z",
    b"Rar!": "RAR",
    b"{\\rt": "RTF",
}
_WORKBOOK_ENDS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


@dataclass(frozen=True)
class TextOptions:
    """A caller's corrections of text files; None where it is to be guessed."""

    encoding: str | None = None
    delimiter: str | None = None


@dataclass(frozen=True)
class FoundSheet:
    """A sheet of an upload.

    Attributes:
        key: tells it from the others of the upload, also when this is read again.
        title: what it is called.
        encoding, delimiter: of a text, each with why it is taken to be that.
    """

    key: str
    title: str
    sheet: Sheet
    encoding: tuple[str, Text] | None = None
    delimiter: tuple[str, Text] | None = None


class UploadedFile:
    """Finds the sheets of an upload.

    Args:
        path: where it is.
        name: what its user calls it.
        folder: an empty one, for what is unpacked.
        options: the options of each sheet, by its key.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        folder: Path,
        limits: ReadingLimits,
        options: dict[str, TextOptions],
    ) -> None:
        self._path = path
        self._name = name
        self._folder = folder
        self._limits = limits
        self._options = options

    def sheets(self) -> Iterator[FoundSheet]:
        """Yield the sheets of the upload, one after the other.

        Raises:
            UnreadableFile: the file is of no known kind, damaged, protected or too large.
        """
        if not is_archive(self._path):
            yield self._text_sheet(self._path, self._name, "0")
        elif is_workbook(self._path):
            yield from self._workbook_sheets(self._path, self._name, "0")
        else:
            files = unpacked(self._path, self._folder, self._limits)
            for number, file in enumerate(files):
                yield from self._sheets_of_entry(file.path, file.name, str(number))

    def _sheets_of_entry(self, path: Path, name: str, key: str) -> Iterator[FoundSheet]:
        if not is_archive(path):
            yield self._text_sheet(path, name, key)
        elif is_workbook(path):
            yield from self._workbook_sheets(path, name, key)
        else:
            raise nested_archive(name)

    def _workbook_sheets(self, path: Path, name: str, key: str) -> Iterator[FoundSheet]:
        sheets = workbook_sheets(path, self._folder, self._limits)
        for number, sheet in enumerate(sheets):
            title = sheet.name if len(sheets) > 1 else _stem(name)
            yield FoundSheet(f"{key}.{number}", title, sheet)

    def _text_sheet(self, path: Path, name: str, key: str) -> FoundSheet:
        _check_kind(path)
        options = self._options.get(key, TextOptions())
        encoding = encoding_of(path)
        if options.encoding is not None:
            encoding = named_encoding(path, options.encoding)

        check_markup(path, encoding)
        delimiter = delimiter_of(path, encoding)
        if options.delimiter in DELIMITERS:
            delimiter = Delimiter(options.delimiter, Text("由您指定", "said by you"))
        elif _is_called_workbook(name) and not is_clearly_delimited(path, encoding):
            raise refusal(
                "文件名像 Excel 工作簿，内容却是没有列的文本：请另存为 XLSX，或改名为 .csv。",
                "It is called a workbook, but holds text without columns: save it as XLSX, or call "
                "it .csv.",
            )

        return FoundSheet(
            key,
            _stem(name),
            DelimitedSheet(path, encoding, delimiter, self._limits),
            (encoding.name, encoding.reason),
            (delimiter.name, delimiter.reason),
        )


def _is_called_workbook(name: str) -> bool:
    return name.lower().endswith(_WORKBOOK_ENDS)


def _stem(name: str) -> str:
    return storable(PurePosixPath(name.replace("\\", "/")).stem)


def _check_kind(path: Path) -> None:
    """Refuse files of known kinds that are no tables."""
    with path.open("rb") as file:
        head = file.read(4)

    if not head:
        raise refusal("文件是空的。", "The file is empty.")
    if head == _OLD_WORKBOOK:
        raise refusal(
            "这是旧式 Excel 文件（XLS），或有密码保护：请另存为没有密码的 XLSX。",
            "This is an old Excel file (XLS), or protected by a password: save it as XLSX, "
            "without one.",
        )

    for mark, kind in _OTHERS.items():
        if head.startswith(mark):
            raise refusal(
                f"不能读取 {kind} 文件：请上传 CSV、TSV、XLSX 或它们的 ZIP。",
                f"{kind} files can't be read: upload CSV, TSV, XLSX or a ZIP of these.",
            )
