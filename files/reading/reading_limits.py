"""How much of a file is read, whatever it claims to be."""

from dataclasses import dataclass

MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class ReadingLimits:
    """Limits of one upload.

    Attributes:
        file_bytes: of a file inside an archive or a workbook, unpacked.
        unpacked_bytes: of all of them together.
        ratio: most times that an archive may grow.
        entries: files of an archive, parts of a workbook.
        tables: tables of one upload.
        columns: of one table.
        cell_chars: of one value.
        line_chars: of one line of text.
        name_chars: of a column's name as written; longer ones are cut.
    """

    file_bytes: int = 1024 * MEGABYTE
    unpacked_bytes: int = 1536 * MEGABYTE
    ratio: int = 200
    entries: int = 200
    tables: int = 50
    columns: int = 500
    cell_chars: int = MEGABYTE
    line_chars: int = 8 * MEGABYTE
    name_chars: int = 200


LIMITS = ReadingLimits()
