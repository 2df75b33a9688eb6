"""Workbooks whose large sheets are cut into several, since calamine holds a sheet as a whole.

A sheet of a million rows would take hundreds of megabytes at once. So a workbook with a large
sheet is written anew, unpacked: the same shared texts and formats, and sheets that have a part of
the rows each. Only tags are looked for, which stand nowhere else in XML without comments and CDATA;
a workbook that is written in another way is left as it is, and read as a whole.
"""

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from files.reading.archives import workbook_parts
from files.reading.reading_limits import MEGABYTE, ReadingLimits

_LARGE = 8 * MEGABYTE  # of a sheet's part, above which it is cut into some of this size
_MOST_DIRECTORY = MEGABYTE  # of the parts that name the sheets
_ROOT = "_rels/.rels"
_BOOK = "xl/workbook.xml"
_RELATED = "xl/_rels/workbook.xml.rels"
_KEPT = ("sharedStrings", "styles")  # kinds of parts that are copied
_MARKUP = b"<!"  # of comments, CDATA and declarations
_DATA = re.compile(rb"<((?:\w+:)?)sheetData(?:\s[^<>]*)?/?>")
_EMPTY = b"<worksheet><sheetData/></worksheet>"
_NUMBERED = re.compile(rb'<(?:\w+:)?row\s[^<>]*?\br="\d+"')
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


@dataclass(frozen=True)
class DividedSheet:
    """A sheet that people see, and the names of the sheets that have its rows, in their order."""

    title: str
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class DividedWorkbook:
    """A workbook that was written anew, with the sheets of the first one."""

    path: Path
    sheets: tuple[DividedSheet, ...]


def divided(path: Path, folder: Path, limits: ReadingLimits) -> DividedWorkbook | None:
    """Measure a workbook, and write it anew into a folder where it has large sheets.

    Returns:
        None: it has none, or is written in a way by which they can't be cut.

    Raises:
        UnreadableFile: it is larger than it may be, or damaged.
    """
    directory = None
    with suppress(_Uncut), zipfile.ZipFile(path) as archive:
        directory = _directory(archive)

    if directory is not None:
        target = folder / f"{path.name}.divided.xlsx"
        try:
            return DividedWorkbook(target, _written(path, target, directory, limits))
        except _Uncut:
            target.unlink()

    for _ in workbook_parts(path, limits):
        pass  # each part is counted while it is read

    return None


class _Uncut(Exception):
    """The workbook has no large sheets, or ones that can't be cut."""


@dataclass(frozen=True)
class _Directory:
    """The parts of a workbook.

    Attributes:
        sheets: titles of the sheets that people see, by their parts.
        kept: names of parts that are copied, by their kinds.
        counts_from_1904: whether dates do.
    """

    sheets: dict[str, str]
    kept: dict[str, str]
    counts_from_1904: str


def _directory(archive: zipfile.ZipFile) -> _Directory:
    """Return what a workbook with large sheets says of its parts; raises `_Uncut`."""
    try:
        root = _xml(archive, _ROOT)
        book = _xml(archive, _BOOK)
        relations = {one.attrib["Id"]: one for one in _xml(archive, _RELATED)}
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
        if _BOOK not in map(_target, root):
            raise _Uncut

        sheets = dict(_sheets(book, relations))
        if max((sizes[part] for part in sheets), default=0) <= _LARGE:
            raise _Uncut
    except (KeyError, ElementTree.ParseError, *_UNREADABLE) as error:
        raise _Uncut from error

    kept = {
        _relation_kind(relation): _target(relation, "xl/")
        for relation in relations.values()
        if _relation_kind(relation) in _KEPT
    }
    dates = [one.get("date1904", "0") for one in book.iter() if _name(one) == "workbookPr"]
    return _Directory(sheets, kept, dates[0] if dates else "0")


_UNREADABLE = (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, ValueError, RuntimeError)


def _xml(archive: zipfile.ZipFile, part: str) -> ElementTree.Element:
    with archive.open(part) as file:
        text = file.read(_MOST_DIRECTORY)

    if len(text) == _MOST_DIRECTORY or _MARKUP in text:
        raise _Uncut

    return ElementTree.fromstring(text)  # noqa: S314  (it is small, and declares no entities)


def _name(element: ElementTree.Element) -> str:
    """Return an element's name without its namespace."""
    return element.tag.rpartition("}")[2]


def _relation_kind(relation: ElementTree.Element) -> str:
    return relation.get("Type", "").rpartition("/")[2]


def _target(relation: ElementTree.Element, folder: str = "") -> str:
    """Return the part that a relation of a part in a folder leads to."""
    target = relation.get("Target", "")
    return target[1:] if target.startswith("/") else f"{folder}{target}"


def _sheets(
    book: ElementTree.Element, relations: Mapping[str, ElementTree.Element]
) -> Iterator[tuple[str, str]]:
    """Yield the parts and titles of the sheets that people see."""
    for element in book.iter():
        if _name(element) != "sheet" or element.get("state", "visible") != "visible":
            continue

        (key,) = (value for name, value in element.items() if name.endswith("}id"))
        if _relation_kind(relations[key]) == "worksheet":
            yield _target(relations[key], "xl/"), element.attrib["name"]


def _written(
    path: Path, target: Path, directory: _Directory, limits: ReadingLimits
) -> tuple[DividedSheet, ...]:
    """Write a workbook anew; raises `_Uncut`, `UnreadableFile`."""
    places = {part: place for place, part in enumerate(directory.sheets)}
    kinds = {part: kind for kind, part in directory.kept.items()}
    pieces: dict[str, tuple[str, ...]] = {}
    with zipfile.ZipFile(target, "w") as book:
        for part, content in workbook_parts(path, limits):
            if part in places:
                pieces[part] = tuple(_write_pieces(book, places[part], content))
            elif part in kinds:
                with book.open(f"xl/{kinds[part]}.xml", "w", force_zip64=True) as copy:
                    copy.writelines(content)

        _write_directory(book, [name for piece in pieces.values() for name in piece], directory)

    if len(pieces) < len(directory.sheets):
        raise _Uncut

    return tuple(DividedSheet(title, pieces[part]) for part, title in directory.sheets.items())


def _write_pieces(book: zipfile.ZipFile, place: int, content: Iterator[bytes]) -> Iterator[str]:
    """Write a sheet as several; yield their names."""
    for number, piece in enumerate(_cut(content)):
        name = f"{place}.{number}"
        book.writestr(_sheet_part(name), piece)
        yield name


def _sheet_part(name: str) -> str:
    return f"xl/worksheets/{name}.xml"


def _cut(content: Iterator[bytes]) -> Iterator[bytes]:
    """Yield sheets that have a part of the rows each; the last one has what follows the rows.

    Raises:
        _Uncut: they can't be cut.
    """
    held = bytearray(next(content, b""))
    begin = _DATA.search(held)
    if begin is None:
        raise _Uncut
    if begin[0].endswith(b"/>"):
        yield _EMPTY
        return

    head = bytes(held[: begin.end()])
    prefix = begin[1]
    row = b"<%brow " % prefix
    end = b"</%bsheetData></%bworksheet>" % (prefix, prefix)
    del held[: begin.end()]
    for more in content:
        held += more
        if len(held) < _LARGE:
            continue

        place = held.rfind(row, 0, held.rfind(b">"))  # the last that is there as a whole
        if place <= 0 or not _NUMBERED.match(held, place):
            raise _Uncut  # what follows would not know its rows

        yield _plain(b"".join((head, held[:place], end)))
        del held[:place]

    yield _plain(head + held)


def _plain(sheet: bytes) -> bytes:
    """Return a sheet in which tags are all that begins with `<`."""
    if _MARKUP in sheet:
        raise _Uncut

    return sheet


def _write_directory(book: zipfile.ZipFile, names: list[str], directory: _Directory) -> None:
    """Write what names the sheets; no text of the first workbook but a truth value is in it."""
    sheets = []
    relations = []
    for number, name in enumerate(names, 1):
        sheets.append(f'<sheet name="{name}" sheetId="{number}" r:id="s{number}"/>')
        relations.append(_relation(f"s{number}", "worksheet", f"worksheets/{name}.xml"))

    relations += [_relation(kind, kind, f"{kind}.xml") for kind in directory.kept]
    counts = quoteattr(directory.counts_from_1904)
    book.writestr(
        _BOOK,
        f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><workbookPr date1904={counts}/>'
        f"<sheets>{''.join(sheets)}</sheets></workbook>",
    )
    book.writestr(_RELATED, _relations(relations))
    book.writestr(_ROOT, _relations([_relation("book", "officeDocument", _BOOK)]))


def _relation(key: str, kind: str, target: str) -> str:
    return f'<Relationship Id="{key}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'


def _relations(relations: Iterable[str]) -> str:
    return f'<Relationships xmlns="{_PACKAGE}">{"".join(relations)}</Relationships>'
