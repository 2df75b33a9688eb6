"""Prose and DDL as documents: prose in sections by its headings, DDL by tables, both cut where they are long."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from common.learning import MAX_DOCUMENT_CHARS, Document, document_id
from databases.ddl import UnreadStatement, read_ddl

_HEADING = re.compile(r"(#{1,6})\s+(.*?)[\s#]*")
_FENCE = re.compile(r"\s*(```|~~~)")
_BLANK_LINES = re.compile(r"\n[ \t]*\n")
_BETWEEN = " › "
_MAX_TITLE_CHARS = 300


@dataclass
class _Section:
    """A heading with those above it, and the lines below it."""

    headings: tuple[str, ...]
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


def documents_of_text(datasource: str, source: str, text: str) -> list[Document]:
    """The sections of a text with Markdown's headings (`# …`), in their order; without headings it is one section."""
    sections = [section for section in _sections(text) if section.text]
    return _documents(datasource, source, "text", ((section.headings, section.text) for section in sections))


def documents_of_ddl(datasource: str, source: str, sql: str) -> tuple[list[Document], list[UnreadStatement]]:
    """A document per table with its statements and comments, and the statements that can't be read. Nothing is run.

    Raises:
        InvalidSql: the text can't be taken apart at all.
    """
    tables, unread = read_ddl(sql)
    texts = (((table.name,), ";\n".join((*table.statements, ""))) for table in tables)
    return _documents(datasource, source, "ddl", texts), unread


def _sections(text: str) -> Iterator[_Section]:
    headings: dict[int, str] = {}
    section, fence = _Section(()), ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
        heading = None if fence or mark else _HEADING.fullmatch(line)
        if heading is None:
            section.lines.append(line)
            continue
        yield section
        level = len(heading[1])
        headings = {each: said for each, said in headings.items() if each < level} | {level: heading[2]}
        section = _Section(tuple(said for said in headings.values() if said))
    yield section


def _documents(
    datasource: str, source: str, kind: Literal["ddl", "text"], texts: Iterable[tuple[Sequence[str], str]]
) -> list[Document]:
    documents: dict[str, Document] = {}
    for headings, text in texts:
        for part in _cut(text):
            title = _title(_BETWEEN.join((source, *headings)), documents)
            known = document_id(datasource, title)
            documents[title] = Document(known, datasource, title, part, kind, source)
    return list(documents.values())


def _title(title: str, taken: Iterable[str]) -> str:
    """The title, with a number when it is taken."""
    title = title[:_MAX_TITLE_CHARS]
    taken = frozenset(taken)
    numbered = (f"{title} ({number})" for number in range(2, len(taken) + 2))
    return next((each for each in (title, *numbered) if each not in taken), title)


def _cut(text: str) -> Iterator[str]:
    """The text in parts of at most `MAX_DOCUMENT_CHARS`, cut between paragraphs where they allow it."""
    part = ""
    for paragraph in _BLANK_LINES.split(text):
        if part and len(part) + len(paragraph) + 2 > MAX_DOCUMENT_CHARS:
            yield part
            part = ""
        part = f"{part}\n\n{paragraph}" if part else paragraph
        while len(part) > MAX_DOCUMENT_CHARS:
            yield part[:MAX_DOCUMENT_CHARS]
            part = part[MAX_DOCUMENT_CHARS:]
    if part:
        yield part
