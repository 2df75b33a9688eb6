"""How much of a file is read, whatever it claims to be."""

from dataclasses import dataclass

MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class ReadingLimits:
    """Limits of one upload.

    Attributes:
        file_bytes: how long a file may be inside an archive or a workbook, unpacked.
        unpacked_bytes: how long all of them may be together.
        ratio: most times that an archive may grow.
        entries: files of an archive, parts of a workbook.
        tables: tables of one upload.
        columns: how many columns a table may have.
        cell_chars: how long one value may be.
        line_chars: how long one line of text may be.
        name_chars: how long a column's name may be as written; longer ones are cut.
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
