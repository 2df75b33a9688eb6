"""Finds SQL in a model's reply, however the reply is laid out.

Every shape (a fence, a tag, JSON, a label …) is an extractor that offers passages: where one
begins, and where it may end. A passage counts by what it holds and not by how it looks:
PostgreSQL's parser decides where it ends, so that a fence, a tag or a brace inside a literal of the
query ends nothing. What lies within a passage that is SQL belongs to it. A passage that is no SQL
itself may hold a shape that has some: a fence in an answer in JSON.
"""

import html
import json
import re
from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import islice
from typing import Any, NamedTuple

import postgast

from agent.thinking.llm.sql_text import (
    EDGES,
    STATEMENT_WORDS,
    Parser,
    Statements,
    dedented,
    first_word,
    is_blank,
    tidy,
)

_MAX_PASSAGES = 40  # of one shape
_MAX_ENDS = 60  # of one passage
_MAX_DEPTH = 3  # of shapes in shapes
_MAX_LEAD, _LEAD_LINES = 400, 2  # characters and lines before a passage that say what it is


class Grade(IntEnum):
    """Kinds of passages by how far they are SQL; a better kind is greater."""

    NOTHING = 0  # no SQL, such as the explanation in a JSON object
    BROKEN = 1
    STATEMENTS = 2
    QUERY = 3


class PassageMark(IntEnum):
    """The degree to which the reply marks a passage as its answer."""

    NONE = 1
    INLINE = 2
    BLOCK = 3


class FoundSql(NamedTuple):
    """A passage that holds SQL.

    Attributes:
        sql: without what the shape put into it, and without what follows a single statement.
        start, end: where the passage stands in the reply.
        is_closed: whether something says that the SQL is complete: what closes the passage, or a
            semicolon.
        is_final: whether the reply calls it the final one.
    """

    sql: str
    start: int
    end: int
    grade: Grade
    mark: PassageMark
    is_closed: bool
    is_final: bool = False


def sql_in(reply: str, known_tables: frozenset[str], *, is_cut: bool = False) -> FoundSql | None:
    """Return the SQL that the reply means; None when it has none. Of a reply that `is_cut`, the SQL
    at which it is cut.

    Of several the one that it calls final, else the last that is a query. SQL that is set off
    outweighs SQL in the text, and what can't be parsed is taken only when nothing can, to be
    repaired.
    """
    return _Reader(known_tables, is_cut).read(reply)


_FINAL = re.compile(
    r"(?<!not )(?<!not the )(?<!not my )\bfinal|(?<!非)(?<!不是)最终"
    r"|最后的?(?:查询|答案|SQL|语句|版本)|定稿",
    re.I,
)
_QUOTED_FENCE = re.compile(r"^[ \t]*>[ \t>]*(?:`{3}|~{3})", re.MULTILINE)
_QUOTE_MARK = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)


class _Reader:
    def __init__(self, known_tables: frozenset[str], is_cut: bool) -> None:
        self._tables = known_tables
        self._is_cut = is_cut
        self._parser = Parser()

    def read(self, reply: str) -> FoundSql | None:
        best: FoundSql | None = None
        for view in dict.fromkeys(_views(reply)):
            found = self._best(view, 0)
            if found and (best is None or found.grade > best.grade):
                best = found
            if best and best.grade is Grade.QUERY:
                break

        return best

    def _best(self, text: str, depth: int) -> FoundSql | None:
        whole = self._statements(text)
        if whole and whole.is_query and self.is_sure(whole):
            return _found_sql(whole, 0, len(text), PassageMark.NONE, is_closed=False)

        offered: list[FoundSql] = []
        for shape in _SHAPES:
            offered += shape(self, text, depth)

        found = _without_overlaps(offered)
        if self._is_cut and found and _is_cut_off(found[-1], text):
            return found[-1]

        return _best_found(found, text)

    def _statements(self, text: str) -> Statements | None:
        return self._parser.parse(tidy(text))

    def passage(
        self,
        text: str,
        bodies: Iterator["_Body"],
        depth: int,
        mark: PassageMark = PassageMark.BLOCK,
        accepts: Callable[[Statements], bool] | None = None,
    ) -> FoundSql | None:
        """Return the SQL of a passage.

        Args:
            bodies: where the passage may begin and end, the likeliest first.
            accepts: which SQL counts; None: the shape says that it holds SQL, and is taken at its
                word.
        """
        first: _Body | None = None
        other: FoundSql | None = None
        for body in _read(bodies):
            first = first or body
            statements = self._statements(body.text)
            if statements is None or (accepts and not accepts(statements)):
                continue

            found = _found_sql(statements, body.start, body.end, mark, is_closed=body.is_closed)
            if statements.is_query:
                return found

            other = other or found

        if other or first is None:
            return other

        return self._inside(text, first, depth, mark, may_be_broken=accepts is None)

    def _inside(
        self, text: str, body: "_Body", depth: int, mark: PassageMark, *, may_be_broken: bool
    ) -> FoundSql | None:
        """Return the SQL of a shape within the passage, else the passage if it tries to be SQL."""
        broken = _broken(body, mark) if may_be_broken else None
        # A part of it that can be parsed would answer something else.
        if broken and _is_in_one_case(first_word(broken.sql)):
            return broken
        if depth >= _MAX_DEPTH or body.text == text:
            return broken

        inner = self._best(body.text, depth + 1)
        if inner and inner.grade > Grade.BROKEN:
            is_closed = inner.is_closed or body.is_closed
            return inner._replace(start=body.start, end=body.end, mark=mark, is_closed=is_closed)

        return broken or inner

    def is_sure(self, statements: Statements) -> bool:
        """Tell whether it can't be a sentence."""
        return statements.is_beyond_doubt(self._tables)

    def is_meant(self, statements: Statements) -> bool:
        """Tell whether code within a sentence is about this database, and not only mentioned."""
        if not self._tables or not statements.tables:
            return statements.reads or self.is_sure(statements)

        return self.is_sure(statements) and not statements.tables.isdisjoint(self._tables)

    def bare(self, text: str, is_labelled: bool) -> Statements | None:
        """Return the parse of `text`, which nothing sets off, if it is SQL beyond doubt."""
        statements = self._statements(text)
        if statements is None or self.is_sure(statements):
            return statements

        is_named = is_labelled and statements.is_query and statements.reads
        return statements if is_named else None


class _Body(NamedTuple):
    """A possible extent of a passage: its text as SQL, and where the whole passage would stand."""

    text: str
    start: int
    end: int
    is_closed: bool = True


_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#\d+|#x[0-9a-fA-F]+);")


def _read(bodies: Iterator[_Body]) -> Iterator[_Body]:
    """Yield the bodies as they are, then those escaped for HTML without their escapes."""
    escaped = []
    for body in bodies:
        yield body
        if _ENTITY.search(body.text):
            escaped.append(body._replace(text=html.unescape(body.text)))

    yield from escaped


def _broken(body: _Body, mark: PassageMark) -> FoundSql | None:
    """Return the body as SQL that can't be parsed, if it begins like a statement."""
    sql = tidy(body.text)
    if is_blank(sql) or not first_word(sql):
        return None

    return FoundSql(sql, body.start, body.end, Grade.BROKEN, mark, body.is_closed)


def _is_in_one_case(word: str) -> bool:
    return word.isupper() or word.islower()


def _is_cut_off(found: FoundSql, text: str) -> bool:
    return found.end >= len(text) and not found.is_closed


def _found_sql(
    statements: Statements, start: int, end: int, mark: PassageMark, *, is_closed: bool
) -> FoundSql:
    grade = Grade.QUERY if statements.is_query else Grade.STATEMENTS
    return FoundSql(
        statements.shortened(), start, end, grade, mark, is_closed or statements.is_ended
    )


def _views(reply: str) -> Iterator[str]:
    """Yield the reply, then as it is if all of it was written for Markdown, HTML or JSON."""
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
    """Remove the backslashes of a JSON string or of Markdown."""
    return _ESCAPED.sub(lambda match: _BLANKS.get(match[1], match[1]), text)


def _without_overlaps(candidates: list[FoundSql]) -> list[FoundSql]:
    """Return the passages with SQL in their order, without those that overlap a better one.

    Broken SQL is worse than any other passage; else what begins first is better, then what is
    longer. A passage without SQL hides what lies in it: an explanation in JSON may mention SQL.
    """
    chosen: list[FoundSql] = []
    for candidate in sorted(candidates, key=_better_first):
        if all(candidate.end <= other.start or candidate.start >= other.end for other in chosen):
            chosen.append(candidate)

    with_sql = [candidate for candidate in chosen if candidate.grade is not Grade.NOTHING]
    return sorted(with_sql, key=lambda candidate: candidate.start)


def _better_first(candidate: FoundSql) -> tuple[bool, int, int, int]:
    return candidate.grade is Grade.BROKEN, candidate.start, -candidate.end, -candidate.mark


def _best_found(candidates: list[FoundSql], text: str) -> FoundSql | None:
    named = []
    lead_start = 0
    for candidate in candidates:
        lead = text[lead_start : candidate.start]
        is_final = candidate.is_final or _is_called_final(lead, candidate.sql)
        named.append(candidate._replace(is_final=is_final))
        lead_start = candidate.end

    return max(named, key=_weight, default=None)


def _weight(candidate: FoundSql) -> tuple[int, bool, int, int]:
    # A block that is called final is meant even when it is broken: it will be repaired.
    is_meant = candidate.grade > Grade.BROKEN or candidate.is_final
    return candidate.mark if is_meant else 0, candidate.is_final, candidate.grade, candidate.start


def _is_called_final(lead: str, sql: str) -> bool:
    lines = [line for line in lead[-_MAX_LEAD:].splitlines() if line.strip()]
    if _FINAL.search("\n".join(lines[-_LEAD_LINES:])):
        return True

    comment = re.match(r"\A\s*+(?:--[^\n]*|/\*.*?\*/)", sql, re.DOTALL)
    return comment is not None and bool(_FINAL.search(comment[0]))


# ------------------------------------------------------------------------------
# fences

_FENCE = re.compile(r"`{3,20}|~{3,20}")
# Languages of fences that may hold SQL; a fence may name none.
_SQL_LANGUAGES = {
    "", "sql", "postgresql", "postgres", "psql", "pgsql", "plpgsql", "pg", "text", "txt", "plain",
    "plaintext", "json", "jsonc", "json5", "xml", "html", "markdown", "md", "yaml", "code", "query",
}  # fmt: skip
_INFO = re.compile(r"[ \t]*\{?\.?([\w+-]*)([^\n]*)")
_QUOTED_LINE = re.compile(r"[ \t>]*")
_BEFORE_FENCE = re.compile(r"(?:[ \t>]|[-*+] |\d{1,3}[.)] )*+")


def _fences(reader: _Reader, text: str, depth: int) -> Iterator[FoundSql]:
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
    """Return where the body of a fence begins, and whether its language may hold SQL."""
    info = _INFO.match(text, end)
    assert info is not None
    word, rest = info[1].lower(), info[2].strip("` ~\r}")
    if first_word(info[0]) and word != "do":  # no language at all: SELECT …
        return end, True

    is_sql = word in _SQL_LANGUAGES
    if rest:
        return info.start(2), is_sql

    return info.end(), is_sql


def _fenced(text: str, opening: re.Match[str], start: int) -> Iterator[_Body]:
    """Yield the bodies that the next fences would close, those on a line of their own first."""
    line = text[text.rfind("\n", 0, opening.start()) + 1 : opening.start()]
    width = len(line) if _BEFORE_FENCE.fullmatch(line) and ">" not in line else 0
    closings = list(_closings(text, opening[0], start))
    closings.sort(key=lambda closing: not _stands_alone(text, closing))
    for closing in closings[:_MAX_ENDS]:
        body = dedented(text[start : closing.start()].strip("\n"), width)
        yield _Body(body, opening.start(), closing.end())

    rest = dedented(text[start:].strip("\n"), width)
    yield _Body(rest, opening.start(), len(text), is_closed=False)


def _closings(text: str, mark: str, start: int) -> Iterator[re.Match[str]]:
    fence = re.compile(f"{mark[0]}{{{len(mark)},}}")
    return islice(fence.finditer(text, start), _MAX_ENDS)


def _stands_alone(text: str, fence: re.Match[str]) -> bool:
    before, after = _rest_of_lines(text, fence.start(), fence.end())
    return bool(_QUOTED_LINE.fullmatch(before)) and not after.strip(EDGES)


def _rest_of_lines(text: str, start: int, end: int) -> tuple[str, str]:
    """Return what stands before `start` on its line, and after `end` on its line."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    after = text[end:line_end] if line_end >= 0 else text[end:]
    return text[line_start:start], after


# ------------------------------------------------------------------------------
# tags

_TAG = re.compile(r"<([A-Za-z][\w:.-]*)(?:\s[^<>]*)?>|\[(SQL|QUERY|ANSWER|CODE)\]", re.IGNORECASE)
# Other tags may hold prose.
_SQL_TAG = re.compile(r"sql|query|statement|code|pre\b|param|arg", re.IGNORECASE)
_CDATA = re.compile(r"\A\s*+<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)
_HTML = {"code", "pre"}  # what they hold is escaped; elsewhere models write it as it is


def _tags(reader: _Reader, text: str, depth: int) -> Iterator[FoundSql]:
    position = 0
    for _ in range(_MAX_PASSAGES):
        opening = _TAG.search(text, position)
        if opening is None:
            return

        is_word = bool(_SQL_TAG.search(opening[1] or opening[2]))
        found = reader.passage(
            text, _tagged(text, opening), depth, accepts=None if is_word else reader.is_sure
        )
        if found:
            yield found._replace(is_final=bool(_FINAL.search(opening[0].replace("_", " "))))

        position = found.end if found else opening.end()


def _tagged(text: str, opening: re.Match[str]) -> Iterator[_Body]:
    name = opening[1] or opening[2]
    pattern = rf"</{re.escape(name)}\s*>" if opening[1] else rf"\[/{name}\]"
    closing = re.compile(pattern, re.IGNORECASE)
    for end in islice(closing.finditer(text, opening.end()), _MAX_ENDS):
        for reading in _readings(name, text[opening.end() : end.start()]):
            yield _Body(reading, opening.start(), end.end())


def _readings(name: str, body: str) -> list[str]:
    """Return what the body of a tag may mean, the likeliest first."""
    cdata = _CDATA.fullmatch(body)
    if cdata:
        return [cdata[1]]
    if name.lower() not in _HTML:
        return [body]

    return list(dict.fromkeys((html.unescape(body), body)))


# ------------------------------------------------------------------------------
# JSON

_BRACKET = re.compile(r"[{\[\"]")
_SQL_KEY = re.compile(r"sql|query|statement", re.IGNORECASE)
_NO_SQL_KEY = re.compile(
    r"expla|reason|thought|note|comment|error|message|question|description|dialect", re.IGNORECASE
)
_LOOSE_STRING = re.compile(r'"(\w+)"\s*:\s*(?=")')
_DECODER = json.JSONDecoder(strict=False)


def _json(reader: _Reader, text: str, depth: int) -> Iterator[FoundSql]:
    found = False
    for value, start, end in json_values(text):
        inner = list(_of_value(reader, value, "", depth))
        if inner:
            found = True
            yield max(inner, key=_weight)._replace(start=start, end=end, is_closed=True)
        elif isinstance(value, dict) and value:
            yield FoundSql("", start, end, Grade.NOTHING, PassageMark.BLOCK, is_closed=True)

    if not found:
        yield from _loose_json(reader, text, depth)


def json_values(text: str) -> Iterator[tuple[Any, int, int]]:
    """Yield the objects, lists and strings in JSON in `text`, each with its start and end.

    Those within others are left out.
    """
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
    before, after = _rest_of_lines(text, start, end)
    return not before.strip() and not after.strip(EDGES)


def _of_value(reader: _Reader, value: Any, key: str, depth: int) -> Iterator[FoundSql]:
    """Yield SQL in a JSON value; strings under a key that names SQL are taken at their word."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _of_value(reader, inner, str(name), depth)
    elif isinstance(value, list):
        for inner in value:
            yield from _of_value(reader, inner, key, depth)
    elif isinstance(value, str) and not _NO_SQL_KEY.search(key):
        found = _of_string(reader, value, key, depth)
        if found:
            yield found._replace(is_final=bool(_FINAL.search(key.replace("_", " "))))


def _of_string(reader: _Reader, value: str, key: str, depth: int) -> FoundSql | None:
    body = iter([_Body(value, 0, len(value))])
    if _SQL_KEY.search(key):
        return reader.passage("", body, depth)

    return reader.passage("", body, depth, PassageMark.INLINE, reader.is_sure)


def _loose_json(reader: _Reader, text: str, depth: int) -> Iterator[FoundSql]:
    """Yield values of keys that name SQL, in JSON with a mistake or without its end."""
    for key in islice(_LOOSE_STRING.finditer(text), _MAX_PASSAGES):
        if not _SQL_KEY.search(key[1]):
            continue

        try:
            value, end = _DECODER.raw_decode(text, key.end())
        except ValueError:
            continue

        for sql in _of_value(reader, value, key[1], depth):
            yield sql._replace(start=key.start(), end=end)


# ------------------------------------------------------------------------------
# inline code

_INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)")


def _inline_code(reader: _Reader, text: str, _depth: int) -> Iterator[FoundSql]:
    position = 0
    for _ in range(_MAX_PASSAGES):
        opening = _INLINE.search(text, position)
        if opening is None:
            return

        bodies = (
            _Body(text[opening.end() : end.start()], opening.start(), end.end())
            for end in _closings(text, opening[0], opening.end())
        )
        found = reader.passage("", bodies, _MAX_DEPTH, PassageMark.INLINE, reader.is_meant)
        if found:
            yield found

        position = found.end if found else opening.end()


# ------------------------------------------------------------------------------
# unfenced

_WORD = re.compile(rf"\b(?:{STATEMENT_WORDS})\b", re.IGNORECASE)
# What may stand before a statement on its line: a label, a list's mark, quotes, emphasis, a
# comment.
_BEFORE = re.compile(
    r"(?P<label>[^\n]{0,200}?[:：>\]】{|=#]|)[\s*_`]*+(?:\d{1,3}[.)、]\s+|[-*•+>]\s+)?[\s*_]*+"
    r"(?P<quote>[\"'“‘「『«]?)"
    r"(?P<own>[\s(]*+(?:/\*(?:[^*/\n]|\*(?!/)|/(?!\*))*+\*/[\s(]*+)*+)"
)
_SAYS_SQL = re.compile(r"sql|query|statement|查询|语句|答案", re.IGNORECASE)
_MAX_LABEL = 40  # characters before a colon that say what follows it
_CLOSING_QUOTES = {"“": "”", "‘": "’", "「": "」", "『": "』", "«": "»"}
_COMMENTS_ABOVE = re.compile(
    r"(?:(?:(?<![ \t])[ \t]*+(?:--[^\n]{0,500}+|/\*(?:[^*/]|\*(?!/)|/(?!\*))*+\*/[ \t]*+)"
    r"|(?<![ \t(])[ \t(]*+)\n)++"
)
# Where a statement may end. Never at a single line break before what may be a condition: the
# statement without it would run and answer wrongly. A label, a list's number and a paragraph or
# whole sentence of prose do end it.
_END = re.compile(
    r"(?P<stop>[;；`}]|\*\*|</?\w|<\||\n[ \t]*\[/)"
    r"|\n(?=[ \t]*+(?P<label>\**\w+(?:[ \t]\w+){0,3}\**[:：](?!:)"
    r"|\d{1,2}[.)、．]\s|#{1,6}\s|-{3,}\s|={3,}\s|\|))"
    r"|\n(?P<bullet>[ \t]*+[-*•+>]\s)"
    r"|\n(?=\s{0,40}+[*_]{0,2}+(?P<sentence>[^\W\d_]++)"
    r"(?:[^\n=<>]{8,}[.!:?]|[^\n=<>]*[。！：？])\**[ \t]*(?:\n|\Z))"
    r"|\n[ \t]*\n(?=\s{0,40}+[*_#>(（-]{0,9}+(?P<paragraph>[^\W\d_]++))"
)
_SURE_END = re.compile(
    r"[;；]|[:：][ \t]*\n|\n[ \t]*\n(?=\s{0,40}+[*_#>(-]{0,9}+(?:[A-Z][a-z]|[^\x00-\x7f]))"
)
_BROKEN_QUERY = re.compile(r"\A\s*+(?:SELECT|WITH)\b.*\bFROM\b", re.DOTALL)


def _unfenced(reader: _Reader, text: str, depth: int) -> Iterator[FoundSql]:
    """Yield SQL in the text itself.

    A word inside a statement that can't be read is no beginning of another.
    """
    blocked = position = 0
    for _ in range(_MAX_PASSAGES):
        word = _WORD.search(text, position)
        if word is None:
            break

        position = word.end()
        if word.start() < blocked:
            continue

        begun = _beginning(text, word.start())
        if begun is None:
            continue

        found = _sql_at(reader, text, *begun)
        if found:
            yield found
            position = blocked = max(position, found.end)
        elif word[0].isupper():
            blocked = _statement_end(text, word.end())

    if depth == 0 and _BROKEN_QUERY.match(text):
        yield _whole_broken(text)


def _whole_broken(text: str) -> FoundSql:
    sql = text.strip(EDGES)
    return FoundSql(sql, 0, len(text), Grade.BROKEN, PassageMark.NONE, is_closed=False)


def _statement_end(text: str, start: int) -> int:
    """Return where a statement that can't be read ends at the latest.

    What follows a blank line may still belong to it.
    """
    end = _SURE_END.search(text, start)
    return end.end() if end else len(text)


def _beginning(text: str, word: int) -> tuple[int, str, bool] | None:
    """Return where the statement begins whose first word stands at `word`; None if none does.

    With it come the quote before it, and whether a label says that it is SQL.
    """
    line = text.rfind("\n", max(0, word - 1000), word) + 1
    before = _BEFORE.fullmatch(text, line, word)
    if before is None:
        return None

    start = before.start("own")
    is_alone = not before["label"] and not before["quote"] and not text[line:start].strip()
    if is_alone:
        start = _comments_above(text, line, start)

    return start, before["quote"], bool(_SAYS_SQL.search(before["label"][-_MAX_LABEL:]))


def _comments_above(text: str, line: int, default: int) -> int:
    """Return where the comments and empty lines right above `line` begin; `default` without any."""
    for run in _COMMENTS_ABOVE.finditer(text, max(0, line - 2000), line):
        if run.end() == line:
            return run.start()

    return default


def _sql_at(
    reader: _Reader, text: str, start: int, quote: str, is_labelled: bool
) -> FoundSql | None:
    tail = text[start:]
    indent = len(tail) - len(tail.lstrip(" \t"))
    for end in _quote_ends(tail, quote) if quote else _ends(tail):
        statements = reader.bare(dedented(tail[:end], indent), is_labelled)
        if statements:
            return _found_sql(
                statements, start, start + end, PassageMark.NONE, is_closed=bool(quote)
            )

    return None


def _quote_ends(tail: str, quote: str) -> list[int]:
    """Return where the closing quote stands, the last first."""
    closing = _CLOSING_QUOTES.get(quote, quote)
    ends = [match.start() for match in re.finditer(re.escape(closing), tail)]
    return ends[-_MAX_ENDS:][::-1]


def _ends(tail: str) -> list[int]:
    """Return where to cut: before prose, the nearest first; then as late as possible.

    A late cut leaves nothing of the statement out.
    """
    before_prose: list[int] = []
    others: list[int] = []
    for mark in islice(_END.finditer(tail), _MAX_ENDS):
        if mark["label"] or _begins_prose(mark):
            before_prose.append(mark.start())
        if mark["stop"] or mark["bullet"]:
            is_semicolon = mark[0] in ";；"
            others.append(mark.end() if is_semicolon else mark.start())

    return [*before_prose, len(tail), *reversed(others)]


def _begins_prose(mark: re.Match[str]) -> bool:
    """Tell whether what follows can't be the next clause of a statement."""
    word = mark["sentence"] or mark["paragraph"]
    if not word:
        return False
    if not word.isascii():
        return True
    if not word[0].isupper():
        return False

    # A whole sentence may begin with a keyword.
    begins_sentence = mark["sentence"] and not word.isupper()
    return bool(begins_sentence) or not _is_keyword(word)


def _is_keyword(word: str) -> bool:
    tokens = postgast.scan(word).tokens
    return bool(tokens) and tokens[0].keyword_kind != 0


_SHAPES = (_fences, _tags, _json, _inline_code, _unfenced)
