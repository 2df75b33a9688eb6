"""Cut prose and DDL into documents: prose by its headings, DDL by tables."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from common.learning import MAX_DOCUMENT_CHARS, Document, DocumentKind, document_id
from sqltree.ddl import UnreadStatement, read_ddl

_HEADING = re.compile(r"\A(#{1,6})\s++(.*)")
_FENCE = re.compile(r"\A\s*+(```|~~~)")
_HEADING_END = "# \t\f\v\u00a0\u3000"
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
    """Make a document of each section of a text with Markdown's headings (`# …`), in their order.

    A text without headings is one section.
    """
    sections = ((section.headings, section.text) for section in _sections(text))
    return _documents(datasource, source, "text", sections)


def documents_of_ddl(
    datasource: str, source: str, sql: str
) -> tuple[list[Document], list[UnreadStatement]]:
    """Make a document of each table, with its statements and comments.

    Also returns the statements that can't be read. Nothing is run.

    Raises:
        InvalidSql: the text can't be taken apart at all.
    """
    tables, unread = read_ddl(sql)
    texts = []
    for table in tables:
        statements = [f"{statement};\n" for statement in table.statements]
        texts.append(((table.name,), "".join(statements)))

    return _documents(datasource, source, "ddl", texts), unread


def _sections(text: str) -> Iterator[_Section]:
    """Yield the sections in their order; what looks like a heading in fenced code is none."""
    headings: dict[int, str] = {}
    section = _Section(())
    open_fence = ""
    for line in text.splitlines():
        fence = _FENCE.match(line)
        if fence is not None and open_fence in ("", fence[1]):
            open_fence = "" if open_fence else fence[1]

        is_code = bool(open_fence) or fence is not None
        heading = None
        if not is_code:
            heading = _HEADING.fullmatch(line)
        if heading is None:
            section.lines.append(line)
            continue

        yield section
        level = len(heading[1])
        headings = {above: title for above, title in headings.items() if above < level}
        headings[level] = heading[2].rstrip(_HEADING_END)
        section = _Section(tuple(filter(None, headings.values())))

    yield section


def _documents(
    datasource: str,
    source: str,
    kind: DocumentKind,
    texts: Iterable[tuple[Sequence[str], str]],
) -> list[Document]:
    documents: dict[str, Document] = {}
    for headings, text in texts:
        for part in _cut(text):
            title = _free_title(_BETWEEN.join((source, *headings)), documents)
            id_ = document_id(datasource, title)
            documents[title] = Document(id_, datasource, title, part, kind, source)

    return list(documents.values())


def _free_title(title: str, taken: Container[str]) -> str:
    """Return the title, with a number when it is taken."""
    title = title[:_MAX_TITLE_CHARS]
    free = title
    number = 1
    while free in taken:
        number += 1
        free = f"{title} ({number})"

    return free


def _cut(text: str) -> Iterator[str]:
    """Yield the text in parts of at most `MAX_DOCUMENT_CHARS`, between paragraphs if possible."""
    part = ""
    for paragraph in _BLANK_LINES.split(text):
        if part and len(part) + len(paragraph) + 2 > MAX_DOCUMENT_CHARS:
            yield part
            part = ""

        if part:
            part += "\n\n"

        part += paragraph
        while len(part) > MAX_DOCUMENT_CHARS:
            yield part[:MAX_DOCUMENT_CHARS]
            part = part[MAX_DOCUMENT_CHARS:]

    if part:
        yield part
