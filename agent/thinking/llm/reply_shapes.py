"""Finds SQL in a model's reply, however the reply is laid out.

Every shape (a fence, a tag, JSON, a label …) is an extractor that offers passages: where one begins, and where it
may end. A passage counts by what it holds and not by how it looks: PostgreSQL's parser decides where it ends, so that a
fence, a tag or a brace inside a literal of the query ends nothing. What lies within a passage that is SQL belongs to
it. A passage that is no SQL itself may hold a shape that has some: a fence in an answer in JSON.
"""

import html
import json
import re
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any, NamedTuple

import postgast

from agent.thinking.llm.sql_text import EDGES, STATEMENT_WORDS, Parser, Statements, dedented, first_word, is_blank, tidy

_MAX_PASSAGES = 40  # of one shape
_MAX_ENDS = 60  # of one passage
_MAX_DEPTH = 3  # of shapes in shapes
_MAX_LEAD, _LEAD_LINES = 400, 2  # characters and lines before a passage that say what it is


class Grade(IntEnum):
    """What a passage holds."""

    NOTHING = 0  # no SQL, such as the explanation in a JSON object
    BROKEN = 1
    STATEMENTS = 2
    QUERY = 3


class Mark(IntEnum):
    """How plainly the reply sets a passage off as what it answers."""

    NONE = 1
    INLINE = 2
    BLOCK = 3


class Found(NamedTuple):
    """A passage that holds SQL.

    Attributes:
        sql: without what the shape put into it, and without what follows a single statement.
        start, end: where the passage stands in the reply.
        is_closed: whether something says that the SQL is complete: what closes the passage, or a semicolon.
        is_final: whether the reply calls it the final one.
    """

    sql: str
    start: int
    end: int
    grade: Grade
    mark: Mark
    is_closed: bool
    is_final: bool = False


def sql_in(reply: str, known_tables: frozenset[str], *, is_cut: bool = False) -> Found | None:
    """The SQL that the reply means; None when it has none. Of a reply that `is_cut`, the SQL at which it is cut.

    Of several the one that it calls final, else the last that is a query. SQL that is set off outweighs SQL in the
    text, and what can't be parsed is taken only when nothing can, to be repaired.
    """
    return _Reader(known_tables, is_cut).read(reply)


_FINAL = re.compile(
    r"(?<!not )(?<!not the )(?<!not my )\bfinal|(?<!非)(?<!不是)最终|最后的?(?:查询|答案|SQL|语句|版本)|定稿", re.I
)
_QUOTED_FENCE = re.compile(r"^[ \t]*>[ \t>]*(?:`{3}|~{3})", re.MULTILINE)
_QUOTE_MARK = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)


class _Reader:
    def __init__(self, known_tables: frozenset[str], is_cut: bool) -> None:
        self._tables = known_tables
        self._is_cut = is_cut
        self._parser = Parser()

    def read(self, reply: str) -> Found | None:
        best: Found | None = None
        for view in dict.fromkeys(_views(reply)):
            found = self._best(view, 0)
            if found and (best is None or found.grade > best.grade):
                best = found
            if best and best.grade is Grade.QUERY:
                break
        return best

    def _best(self, text: str, depth: int) -> Found | None:
        whole = self._statements(text)
        if whole and whole.is_query and whole.is_beyond_doubt(self._tables):
            return _of(whole, 0, len(text), Mark.NONE, is_closed=False)
        found = _outermost([one for shape in _SHAPES for one in shape(self, text, depth)])
        if self._is_cut and found and found[-1].end >= len(text) and not found[-1].is_closed:
            return found[-1]
        return _chosen(found, text)

    def _statements(self, text: str) -> Statements | None:
        return self._parser.parse(tidy(text))

    def passage(
        self,
        text: str,
        bodies: Iterator["_Body"],
        depth: int,
        mark: Mark = Mark.BLOCK,
        accepts: Callable[[Statements], bool] | None = None,
    ) -> Found | None:
        """The SQL of a passage.

        Args:
            bodies: where the passage may begin and end, the likeliest first.
            accepts: which SQL counts; None: the shape says that it holds SQL, and is taken at its word.
        """
        first: _Body | None = None
        other: Found | None = None
        for body in _read(bodies):
            first = first or body
            statements = self._statements(body.text)
            if statements is None or (accepts and not accepts(statements)):
                continue
            if statements.is_query:
                return _of(statements, body.start, body.end, mark, is_closed=body.is_closed)
            if other is None:
                other = _of(statements, body.start, body.end, mark, is_closed=body.is_closed)
        if other or first is None:
            return other
        return self._inside(text, first, depth, mark, may_be_broken=accepts is None)

    def _inside(self, text: str, body: "_Body", depth: int, mark: Mark, *, may_be_broken: bool) -> Found | None:
        """The SQL of a shape within the passage, else the passage itself if it tries to be SQL."""
        sql = tidy(body.text)
        word = first_word(sql) if may_be_broken and not is_blank(sql) else ""
        broken = Found(sql, body.start, body.end, Grade.BROKEN, mark, body.is_closed) if word else None
        if word.isupper() or word.islower():  # a part of it that can be parsed would answer something else
            return broken
        inner = self._best(body.text, depth + 1) if depth < _MAX_DEPTH and body.text != text else None
        if inner and inner.grade > Grade.BROKEN:
            is_closed = inner.is_closed or body.is_closed
            return inner._replace(start=body.start, end=body.end, mark=mark, is_closed=is_closed)
        return broken or inner

    def is_sure(self, statements: Statements) -> bool:
        """Whether it can't be a sentence."""
        return statements.is_beyond_doubt(self._tables)

    def is_meant(self, statements: Statements) -> bool:
        """Whether code in the middle of a sentence is about this database, and not only mentioned."""
        if not self._tables or not statements.tables:
            return statements.reads or self.is_sure(statements)
        return self.is_sure(statements) and not statements.tables.isdisjoint(self._tables)

    def bare(self, text: str, is_labelled: bool) -> Statements | None:
        """`text`, which nothing sets off, if it is SQL beyond doubt."""
        statements = self._statements(text)
        if statements is None:
            return None
        is_named = is_labelled and statements.is_query and statements.reads
        return statements if is_named or self.is_sure(statements) else None


class _Body(NamedTuple):
    """One possible extent of a passage: its text as SQL, and where the whole passage would stand."""

    text: str
    start: int
    end: int
    is_closed: bool = True


_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#\d+|#x[0-9a-fA-F]+);")


def _read(bodies: Iterator[_Body]) -> Iterator[_Body]:
    """The bodies as they are, then as they are if their characters were escaped for HTML."""
    escaped = []
    for body in bodies:
        yield body
        if _ENTITY.search(body.text):
            escaped.append(body._replace(text=html.unescape(body.text)))
    yield from escaped


def _of(statements: Statements, start: int, end: int, mark: Mark, *, is_closed: bool) -> Found:
    grade = Grade.QUERY if statements.is_query else Grade.STATEMENTS
    return Found(statements.shortened(), start, end, grade, mark, is_closed or statements.is_ended)


def _views(reply: str) -> Iterator[str]:
    """The reply, and what it is if all of it was written for a medium that marks or escapes characters."""
    reply = reply.strip(EDGES)
    if reply.count("\n") == reply.count("\r\n"):
        reply = reply.replace("\r\n", "\n")
    unquoted = _QUOTE_MARK.sub("", reply)
    yield from (unquoted, reply) if _QUOTED_FENCE.search(reply) else (reply, unquoted)
    for changed in (html.unescape(reply), _unescaped(reply)):
        if changed != reply:
            yield changed


_ESCAPED = re.compile(r"""\\([ntr"'*_`<>#|\\])""")
_BLANKS = {"n": "\n", "t": "\t", "r": "\r"}


def _unescaped(text: str) -> str:
    """Without the backslashes of a JSON string or of Markdown."""
    return _ESCAPED.sub(lambda match: _BLANKS.get(match[1], match[1]), text)


def _outermost(found: list[Found]) -> list[Found]:
    """Without passages that overlap one that begins before them; broken ones claim nothing."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda one: (one.grade is Grade.BROKEN, one.start, -one.end, -one.mark)):
        if all(one.end <= other.start or one.start >= other.end for other in kept):
            kept.append(one)
    return sorted((one for one in kept if one.grade), key=lambda one: one.start)


def _chosen(found: list[Found], text: str) -> Found | None:
    ends = [0, *(one.end for one in found)]
    named = [
        one._replace(is_final=one.is_final or _is_called_final(text[end : one.start], one.sql))
        for end, one in zip(ends, found, strict=False)
    ]
    return max(named, key=_weight, default=None)


def _weight(one: Found) -> tuple[int, bool, int, int]:
    is_sql = one.grade > Grade.BROKEN
    # A block that is called final is meant even when it is broken: it will be repaired.
    return one.mark if is_sql or one.is_final else 0, one.is_final, one.grade, one.start


def _is_called_final(lead: str, sql: str) -> bool:
    comment = re.match(r"\s*(?:--[^\n]*|/\*.*?\*/)", sql, re.DOTALL)
    lines = [line for line in lead[-_MAX_LEAD:].splitlines() if line.strip()]
    return bool(_FINAL.search("\n".join(lines[-_LEAD_LINES:])) or (comment and _FINAL.search(comment[0])))


# ---------------------------------------------------------------------------------------------------------- fences

_FENCE = re.compile(r"`{3,20}|~{3,20}")
_SQL_LANGUAGES = {"", "sql", "postgresql", "postgres", "psql", "pgsql", "plpgsql", "pg", "text", "txt", "json", "xml"}
_SQL_LANGUAGES |= {"plaintext", "plain", "html", "markdown", "md", "yaml", "code", "query", "jsonc", "json5"}
_INFO = re.compile(r"[ \t]*\{?\.?([\w+-]*)([^\n]*)")
_QUOTED_LINE = re.compile(r"[ \t>]*")
_BEFORE_FENCE = re.compile(r"(?:[ \t>]|[-*+] |\d{1,3}[.)] )*+")


def _fences(reader: _Reader, text: str, depth: int) -> Iterator[Found]:
    position = 0
    for _ in range(_MAX_PASSAGES):
        opening = _FENCE.search(text, position)
        if opening is None:
            return
        start, is_sql = _after_info(text, opening.end())
        bodies = list(_fenced(text, opening, start))
        found = reader.passage(text, iter(bodies), depth) if is_sql else None
        if found:
            yield found
        position = found.end if found else bodies[0].end


def _after_info(text: str, end: int) -> tuple[int, bool]:
    """Where the body of a fence begins, and whether its language may hold SQL."""
    info = _INFO.match(text, end)
    assert info is not None
    word, rest = info[1].lower(), info[2].strip("` ~\r}")
    if first_word(info[0]) and word != "do":  # no language at all: SELECT …
        return end, True
    if rest and word in _SQL_LANGUAGES and (first_word(rest) or not info[2].startswith((":", " title", "{"))):
        return info.start(2), True
    return (info.end() if not rest else info.start(2)), word in _SQL_LANGUAGES


def _fenced(text: str, opening: re.Match[str], start: int) -> Iterator[_Body]:
    """The bodies that the next fences would close: those on a line of their own first, then any."""
    line = text[text.rfind("\n", 0, opening.start()) + 1 : opening.start()]
    width = len(line) if _BEFORE_FENCE.fullmatch(line) and ">" not in line else 0
    closings = list(_closings(text, opening[0], start))
    alone = [one for one in closings if _stands_alone(text, one)]
    for closing in [*alone, *(one for one in closings if one not in alone)][:_MAX_ENDS]:
        yield _Body(dedented(text[start : closing.start()].strip("\n"), width), opening.start(), closing.end())
    yield _Body(dedented(text[start:].strip("\n"), width), opening.start(), len(text), is_closed=False)


def _closings(text: str, mark: str, start: int) -> Iterator[re.Match[str]]:
    fence = re.compile(f"{mark[0]}{{{len(mark)},}}")
    return (one for _, one in zip(range(_MAX_ENDS), fence.finditer(text, start), strict=False))


def _stands_alone(text: str, fence: re.Match[str]) -> bool:
    begin, end = text.rfind("\n", 0, fence.start()) + 1, text.find("\n", fence.end())
    after = text[fence.end() : end if end >= 0 else len(text)]
    return bool(_QUOTED_LINE.fullmatch(text[begin : fence.start()])) and not after.strip(EDGES)


# ------------------------------------------------------------------------------------------------------------ tags

_TAG = re.compile(r"<([A-Za-z][\w:.-]*)(?:\s[^<>]*)?>|\[(SQL|QUERY|ANSWER|CODE)\]", re.IGNORECASE)
_SQL_TAG = re.compile(r"sql|query|statement|code|pre\b|param|arg", re.IGNORECASE)  # others may hold prose
_CDATA = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)
_HTML = {"code", "pre"}  # what they hold is escaped; elsewhere models write it as it is


def _tags(reader: _Reader, text: str, depth: int) -> Iterator[Found]:
    position = 0
    for _ in range(_MAX_PASSAGES):
        opening = _TAG.search(text, position)
        if opening is None:
            return
        is_word = bool(_SQL_TAG.search(opening[1] or opening[2]))
        found = reader.passage(text, _tagged(text, opening), depth, accepts=None if is_word else reader.is_sure)
        if found:
            yield found._replace(is_final=bool(_FINAL.search(opening[0].replace("_", " "))))
        position = found.end if found else opening.end()


def _tagged(text: str, opening: re.Match[str]) -> Iterator[_Body]:
    name = opening[1] or opening[2]
    closing = re.compile(rf"</{re.escape(name)}\s*>" if opening[1] else rf"\[/{name}\]", re.IGNORECASE)
    for _, end in zip(range(_MAX_ENDS), closing.finditer(text, opening.end()), strict=False):
        body = text[opening.end() : end.start()]
        cdata = _CDATA.fullmatch(body)
        readings = [cdata[1]] if cdata else [html.unescape(body), body] if name.lower() in _HTML else [body]
        for reading in dict.fromkeys(readings):
            yield _Body(reading, opening.start(), end.end())


# ------------------------------------------------------------------------------------------------------------ JSON

_BRACKET = re.compile(r"[{\[\"]")
_SQL_KEY = re.compile(r"sql|query|statement", re.IGNORECASE)
_NO_SQL_KEY = re.compile(r"expla|reason|thought|note|comment|error|message|question|description|dialect", re.IGNORECASE)
_LOOSE_STRING = re.compile(r'"(\w+)"\s*:\s*(?=")')
_DECODER = json.JSONDecoder(strict=False)


def _json(reader: _Reader, text: str, depth: int) -> Iterator[Found]:
    found = False
    for value, start, end in json_values(text):
        inner = list(_of_value(reader, value, "", depth))
        if inner:
            found = True
            yield max(inner, key=_weight)._replace(start=start, end=end, is_closed=True)
        elif isinstance(value, dict) and value:
            yield Found("", start, end, Grade.NOTHING, Mark.BLOCK, is_closed=True)
    if not found:
        yield from _loose_json(reader, text, depth)


def json_values(text: str) -> Iterator[tuple[Any, int, int]]:
    """The objects, lists and strings in JSON that stand in `text`, outermost only, each with its start and end."""
    position = 0
    for _ in range(_MAX_PASSAGES):
        opening = _BRACKET.search(text, position)
        if opening is None:
            return
        try:
            value, position = _DECODER.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            position = opening.end()
            continue
        if isinstance(value, str) and not _stands_apart(text, opening.start(), position):
            position = opening.end()  # a quoted name
        else:
            yield value, opening.start(), position


def _stands_apart(text: str, start: int, end: int) -> bool:
    line = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    return not text[line[0] : start].strip() and not text[end : line[1] if line[1] >= 0 else len(text)].strip(EDGES)


def _of_value(reader: _Reader, value: Any, key: str, depth: int) -> Iterator[Found]:
    """SQL in a JSON value; strings under a key that names SQL are taken at their word."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _of_value(reader, inner, str(name), depth)
    elif isinstance(value, list):
        for inner in value:
            yield from _of_value(reader, inner, key, depth)
    elif isinstance(value, str) and not _NO_SQL_KEY.search(key):
        body = iter([_Body(value, 0, len(value))])
        if _SQL_KEY.search(key):
            found = reader.passage("", body, depth)
        else:
            found = reader.passage("", body, depth, Mark.INLINE, reader.is_sure)
        if found:
            yield found._replace(is_final=bool(_FINAL.search(key.replace("_", " "))))


def _loose_json(reader: _Reader, text: str, depth: int) -> Iterator[Found]:
    """Values of keys that name SQL, in what would be JSON but for a mistake or its missing end."""
    for _, key in zip(range(_MAX_PASSAGES), _LOOSE_STRING.finditer(text), strict=False):
        try:
            value, end = _DECODER.raw_decode(text, key.end())
        except ValueError:
            continue
        if _SQL_KEY.search(key[1]):
            yield from (one._replace(start=key.start(), end=end) for one in _of_value(reader, value, key[1], depth))


# ------------------------------------------------------------------------------------------------------ inline code

_INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)")


def _inline_code(reader: _Reader, text: str, _depth: int) -> Iterator[Found]:
    position = 0
    for _ in range(_MAX_PASSAGES):
        opening = _INLINE.search(text, position)
        if opening is None:
            return
        bodies = (
            _Body(text[opening.end() : end.start()], opening.start(), end.end())
            for end in _closings(text, opening[0], opening.end())
        )
        found = reader.passage("", bodies, _MAX_DEPTH, Mark.INLINE, reader.is_meant)
        if found:
            yield found
        position = found.end if found else opening.end()


# --------------------------------------------------------------------------------------------------------- unfenced

_WORD = re.compile(rf"\b(?:{STATEMENT_WORDS})\b", re.IGNORECASE)
# What may stand before a statement on its line: a label, a list's mark, quotes, emphasis, a comment.
_BEFORE = re.compile(
    r"(?P<label>[^\n]{0,200}?[:：>\]】{|=#]|)[\s*_`]*+(?:\d{1,3}[.)、]\s+|[-*•+>]\s+)?[\s*_]*+(?P<quote>[\"'“‘「『«]?)"
    r"(?P<own>[\s(]*+(?:/\*.*?\*/[\s(]*+)*+)"
)
_SAYS_SQL = re.compile(r"sql|query|statement|查询|语句|答案", re.IGNORECASE)
_MAX_LABEL = 40  # characters before a colon that say what follows it
_CLOSING_QUOTES = {"“": "”", "‘": "’", "「": "」", "『": "』", "«": "»"}
_COMMENTS_ABOVE = re.compile(r"(?:(?:[ \t]*--[^\n]*|[ \t]*/\*(?:[^*]|\*(?!/))*\*/[ \t]*|[ \t(]*)\n)+\Z")
# Where a statement may end. Never at a single line break before what may be a condition: the statement without it
# would run and answer wrongly. A label, a list's number and a paragraph or whole sentence of prose do end it.
_END = re.compile(
    r"(?P<stop>[;；`}]|\*\*|</?\w|<\||\n[ \t]*\[/)"
    r"|\n(?=[ \t]*(?P<label>\**\w+(?:[ \t]\w+){0,3}\**[:：](?!:)|\d{1,2}[.)、．]\s|#{1,6}\s|-{3,}\s|={3,}\s|\|))"
    r"|\n(?P<bullet>[ \t]*[-*•+>]\s)"
    r"|\n(?=\s{0,40}[*_]{0,2}(?P<sentence>[^\W\d_]++)(?:[^\n=<>]{8,}[.!:?]|[^\n=<>]*[。！：？])\**[ \t]*(?:\n|\Z))"
    r"|\n[ \t]*\n(?=\s{0,40}[*_#>(（-]{0,9}(?P<paragraph>[^\W\d_]++))"
)
_SURE_END = re.compile(r"[;；]|[:：][ \t]*\n|\n[ \t]*\n(?=\s{0,40}[*_#>(-]{0,9}(?:[A-Z][a-z]|[^\x00-\x7f]))")
_BROKEN_QUERY = re.compile(r"\s*(?:SELECT|WITH)\b.*\bFROM\b", re.DOTALL)


def _unfenced(reader: _Reader, text: str, depth: int) -> Iterator[Found]:
    """SQL in the text itself. A place inside a statement that can't be read is no beginning of another."""
    blocked = position = 0
    for _ in range(_MAX_PASSAGES):
        word = _WORD.search(text, position)
        if word is None:
            break
        position = word.end()
        begun = _beginning(text, word.start()) if word.start() >= blocked else None
        if begun is None:
            continue
        found = _at(reader, text, *begun)
        if found:
            yield found
            position = blocked = max(position, found.end)
        elif text[word.start() : word.end()].isupper():
            blocked = _statement_end(text, word.end())
    if depth == 0 and _BROKEN_QUERY.match(text):
        yield Found(text.strip(EDGES), 0, len(text), Grade.BROKEN, Mark.NONE, is_closed=False)


def _statement_end(text: str, start: int) -> int:
    """Where at the latest a statement ends that can't be read: what follows a blank line may still belong to it."""
    end = _SURE_END.search(text, start)
    return end.end() if end else len(text)


def _beginning(text: str, word: int) -> tuple[int, str, bool] | None:
    """Where the statement begins whose first word stands at `word`, the quote before it, whether a label says SQL."""
    line = text.rfind("\n", max(0, word - 1000), word) + 1
    before = _BEFORE.fullmatch(text, line, word)
    if before is None:
        return None
    start = before.start("own")
    if not before["label"] and not before["quote"]:
        above = _COMMENTS_ABOVE.search(text, max(0, line - 2000), line)
        start = above.start() if above and not text[line:start].strip() else start
    return start, before["quote"], bool(_SAYS_SQL.search(before["label"][-_MAX_LABEL:]))


def _at(reader: _Reader, text: str, start: int, quote: str, is_labelled: bool) -> Found | None:
    tail = text[start:]
    if quote:
        closing = _CLOSING_QUOTES.get(quote, quote)
        ends = [at.start() for at in re.finditer(re.escape(closing), tail)][-_MAX_ENDS:][::-1]
    else:
        ends = _ends(tail)
    for end in ends:
        body = dedented(tail[:end], len(tail) - len(tail.lstrip(" \t")))
        statements = reader.bare(body, is_labelled)
        if statements:
            return _of(statements, start, start + end, Mark.NONE, is_closed=bool(quote))
    return None


def _ends(tail: str) -> list[int]:
    """Places at which to cut: before prose, nearest first; else as late as possible, so that nothing is left out."""
    marks = [mark for _, mark in zip(range(_MAX_ENDS), _END.finditer(tail), strict=False)]
    prose = [mark.start() for mark in marks if mark["label"] or _begins_prose(mark)]
    rest = [
        mark.end() if mark[0] in ";；" else mark.start() for mark in reversed(marks) if mark["stop"] or mark["bullet"]
    ]
    return [*prose, len(tail), *rest]


def _begins_prose(mark: re.Match[str]) -> bool:
    """Whether what follows can't be the next clause of a statement: a whole sentence may begin with a keyword."""
    word = mark["sentence"] or mark["paragraph"]
    if not word or not word.isascii():
        return bool(word)
    return word[0].isupper() and (not _is_keyword(word) or (bool(mark["sentence"]) and not word.isupper()))


def _is_keyword(word: str) -> bool:
    tokens = postgast.scan(word).tokens
    return bool(tokens) and tokens[0].keyword_kind != 0


_SHAPES = (_fences, _tags, _json, _inline_code, _unfenced)
