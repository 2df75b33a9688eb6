"""ZIP archives of files, and workbooks, which are archives too: measured before they are unpacked.

No path of an archive is used: entries are unpacked under numbers. What an archive says of its sizes
is not believed, since a few kilobytes can unpack to terabytes.
"""

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from files.reading.reading_limits import ReadingLimits
from files.reading.unreadable import UnreadableFile, refusal

_PIECE = 1024 * 1024
_SMALL = 1024 * 1024  # what unpacks to less may be packed however tightly
_ENCRYPTED = 0x1
_UTF_8_NAME = 0x800
_IGNORED = ("__MACOSX/", ".DS_Store", "Thumbs.db")
_WORKBOOK = "xl/workbook.xml"
_OTHER_WORKBOOKS = {
    "content.xml": "ODS",
    "xl/workbook.bin": "XLSB",
    "Index/Document.iwa": "Numbers",
}
_DAMAGED = (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, ValueError)
_KINDS = {".csv": "text", ".tsv": "text", ".txt": "text", ".tab": "text"}
_KINDS |= {".xlsx": "workbook", ".xlsm": "workbook"}


@dataclass(frozen=True)
class UnpackedFile:
    """A file of an archive, unpacked.

    Attributes:
        name: without its folders.
    """

    path: Path
    name: str


def is_archive(path: Path) -> bool:
    """Tell whether the file begins as a ZIP archive."""
    with path.open("rb") as file:
        return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


def is_workbook(path: Path) -> bool:
    """Tell whether an archive is a workbook.

    Raises:
        UnreadableFile: it is damaged.
    """
    with _open_archive(path) as archive:
        return _WORKBOOK in archive.namelist()


def workbook_parts(path: Path, limits: ReadingLimits) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the name and the content of each part of a workbook; all of them are read and counted.

    Raises:
        UnreadableFile: they are larger than they may be, or damaged.
    """
    with _open_archive(path) as archive:
        entries = archive.infolist()
        _check_entries(entries, limits)
        budget = _Budget(path, limits)
        for entry in entries:
            if entry.filename.endswith(".bin"):
                continue  # macros are not read

            content = _pieces_within_budget(archive, entry, budget)
            yield entry.filename, content
            for _ in content:
                pass  # what nobody has read counts as well


def _pieces_within_budget(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, budget: "_Budget"
) -> Iterator[bytes]:
    for piece in _pieces(archive, entry):
        budget.spend(len(piece), entry)
        yield piece


def unpacked(path: Path, folder: Path, limits: ReadingLimits) -> Iterator[UnpackedFile]:
    """Unpack the files of an archive into a folder, one after the other.

    Raises:
        UnreadableFile: it is damaged, protected or too large, or holds another archive.
    """
    with _open_archive(path) as archive:
        _check_workbook(archive)
        entries = [entry for entry in archive.infolist() if _is_wanted(entry)]
        _check_entries(entries, limits)
        budget = _Budget(path, limits)
        for number, entry in enumerate(entries):
            name = _name(entry)
            kind = PurePosixPath(name).suffix.lower()
            if kind not in _KINDS:
                raise _unknown_kind(name)

            target = folder / f"{number}{kind}"
            with target.open("wb") as file:
                file.writelines(_pieces_within_budget(archive, entry, budget))

            yield UnpackedFile(target, name)


class _Budget:
    """Counts the bytes that are unpacked, and stops at the limits."""

    def __init__(self, path: Path, limits: ReadingLimits) -> None:
        self._limits = limits
        self._packed = max(1, path.stat().st_size)
        self._spent = 0
        self._of_entry: dict[str, int] = {}

    def spend(self, count: int, entry: zipfile.ZipInfo) -> None:
        """Take away bytes that were unpacked; raises `UnreadableFile` when none are left."""
        self._spent += count
        of_entry = self._of_entry.get(entry.filename, 0) + count
        self._of_entry[entry.filename] = of_entry
        most = self._limits.unpacked_bytes
        is_too_large = self._spent > most or of_entry > self._limits.file_bytes
        is_bomb = self._spent > max(_SMALL, self._packed * self._limits.ratio)
        if is_too_large or is_bomb:
            size = f"{self._spent // _PIECE} MB"
            raise refusal(
                f"压缩文件解开后太大（超过 {size}），没有读取。",
                f"Unpacked, the archive is too large (more than {size}); it was not read.",
            )


def _open_archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except _DAMAGED as error:
        raise _damaged_archive() from error


def _check_workbook(archive: zipfile.ZipFile) -> None:
    for name, kind in _OTHER_WORKBOOKS.items():
        if name in archive.namelist():
            raise refusal(
                f"不能读取 {kind} 工作簿：请另存为 XLSX。",
                f"{kind} workbooks can't be read: save it as XLSX.",
            )


def _check_entries(entries: list[zipfile.ZipInfo], limits: ReadingLimits) -> None:
    if not entries:
        raise refusal("压缩文件是空的。", "The archive is empty.")
    if len(entries) > limits.entries:
        raise refusal(
            f"压缩文件有 {len(entries)} 个文件，最多 {limits.entries} 个。",
            f"The archive has {len(entries)} files; at most {limits.entries} are read.",
        )
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise refusal(
            "压缩文件有密码保护：请去掉密码后再上传。",
            "The archive is protected by a password: upload it without.",
        )


def _pieces(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    try:
        with archive.open(entry) as file:
            while piece := file.read(_PIECE):
                yield piece
    except (*_DAMAGED, zipfile.LargeZipFile, RuntimeError) as error:
        raise _damaged_archive() from error
    except Exception as error:
        if type(error).__module__ != "zlib":
            raise

        raise _damaged_archive() from error


def _is_wanted(entry: zipfile.ZipInfo) -> bool:
    if entry.is_dir():
        return False

    return not any(part in entry.filename for part in _IGNORED)


def _name(entry: zipfile.ZipInfo) -> str:
    """Return the file's name without folders; Windows writes Chinese ones in GBK."""
    name = entry.filename
    if not entry.flag_bits & _UTF_8_NAME:
        try:
            name = name.encode("cp437").decode("gb18030")
        except UnicodeError:
            name = entry.filename

    return PurePosixPath(name.replace("\\", "/")).name


def _unknown_kind(name: str) -> UnreadableFile:
    if name.lower().endswith((".zip", ".gz", ".7z", ".rar", ".tar", ".bz2", ".xz")):
        return nested_archive(name)

    return refusal(
        f"压缩文件里的 {name} 不是 CSV、TSV 或 XLSX。",
        f"{name} in the archive is no CSV, TSV or XLSX.",
    )


def nested_archive(name: str) -> UnreadableFile:
    """Return the error for an archive in an archive."""
    return refusal(
        f"压缩文件里还有压缩文件（{name}）：请只压缩一层。",
        f"The archive holds another archive ({name}): pack the files once.",
    )


def _damaged_archive() -> UnreadableFile:
    return refusal(
        "压缩文件或工作簿已损坏，或没有完整上传。",
        "The archive or workbook is damaged, or was not sent whole.",
    )
