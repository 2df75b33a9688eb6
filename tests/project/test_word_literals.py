"""Words are data: outside the files of words, no code of rules and knowledge holds a word that
questions may use.

A literal is a word where it holds Chinese, where it is compared (an element of a container or of a
comparison), and where it is part of a pattern. Sentences for users (`Text`), docstrings and names
that code gives to things are none.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from common.word_files import Words
from knowledge.words import DICTIONARY, THESAURUS
from knowledge.words import WORDS as KNOWN
from rules.words import WORDS

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("rules", "knowledge")
# What reads the files of words; the table of patterns, which quotes single words; the keywords of
# SQL.
MAY_HOLD_WORDS = (
    "rules/words/",
    "rules/reading/patterns.py",
    "rules/reading/costs.py",
    "knowledge/words/",
)
HAN = re.compile(r"[\u3400-\u9fff]")
LATIN = re.compile(r"[A-Za-z]{3,}")
WORD = re.compile(r"[A-Za-z]{3,}(?: [A-Za-z]+)*")
# What is no word in a pattern: escapes, groups' names, character classes.
ESCAPED = re.compile(r"\\u\w{4}|\\\w|\(\?[\w:!=<>]*|\[[^\]]*\]|\{[^}]*\}")
READS_PATTERNS = {"compile", "search", "match", "fullmatch", "sub", "split", "findall", "finditer"}
SQL = {
    "text",
    "character",
    "varchar",
    "char",
    "citext",
    "name",
    "bpchar",
    "bool",
    "LIMIT",
    "FETCH",
    "FIRST",
    "NEXT",
    "FETCH FIRST ROW WITH TIES",
    "ROW",
    "WITH",
    "TIES",
}
SQL |= {"row", "number", "rank", "real", "int", "double precision"}
ENDINGS = {
    "ing",
    "ies",
    "sses",
    "shes",
    "ches",
    "xes",
    "zzes",
}  # of English words, by which their forms are told apart
CHARACTERS = {"aeiou", "lsz", "NFKC", "PZC"}  # not words: letters, forms and categories of Unicode
NOT_WORDS = SQL | ENDINGS | CHARACTERS | {"space"}


def _files(room: str) -> Iterator[Path]:
    return (path for path in sorted((ROOT / room).rglob("*.py")))


FILES: tuple[Words, ...] = (
    WORDS.english,
    WORDS.chinese,
    KNOWN.english,
    KNOWN.chinese,
    THESAURUS,
    DICTIONARY,
)
# Every table of words and everything in it, by its whole name: talk, talk.small, talk.small.thanks.
PLACES = frozenset(
    ".".join(parts[:length])
    for parts in (place.split(".") for words in FILES for place in words.places)
    for length in range(1, len(parts) + 1)
)


@cache
def _names() -> frozenset[str]:
    """What code calls things by: members of `Literal`, names of fields and parameters, and of
    tables of words.
    """
    names = {part for place in PLACES for part in place.split(".")}
    for path in (
        path
        for room in (*ROOMS, "common", "databases", "guard", "sqltree", "store", "llm", "postgres")
        for path in _files(room)
    ):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.value, ast.Name)
                and node.value.id == "Literal"
            ):
                names |= {
                    str(one.value) for one in ast.walk(node.slice) if isinstance(one, ast.Constant)
                }
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
            elif isinstance(node, ast.arg | ast.keyword) and node.arg is not None:
                names.add(node.arg)
            elif isinstance(node, ast.FunctionDef):
                names.add(node.name)
    return frozenset(names)


def _called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def _is_word(literal: str, parent: ast.AST, calls: set[str], is_key: bool) -> bool:
    if HAN.search(literal):
        return True
    if literal in PLACES:
        return False
    if calls & READS_PATTERNS:
        return not {*LATIN.findall(ESCAPED.sub(" ", literal).replace("_", " "))} <= NOT_WORDS
    if "listed" in calls:
        return not {*literal.split()} <= _names() | NOT_WORDS
    is_compared = is_key or isinstance(parent, ast.Tuple | ast.List | ast.Set | ast.Compare)
    return (
        is_compared and WORD.fullmatch(literal) is not None and literal not in _names() | NOT_WORDS
    )


def words_in(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of the words that stand in Python code."""
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        parent = parents[node]
        calls: set[str] = set()
        above: ast.AST = node
        while above in parents:
            above = parents[above]
            calls.add(_called(above))
        is_key = isinstance(parent, ast.Dict) and node in parent.keys
        if (
            not isinstance(parent, ast.Expr)
            and "Text" not in calls
            and _is_word(node.value, parent, calls, is_key)
        ):
            yield node.lineno, node.value


def test_words_stand_in_files_of_words() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {literal!r}"
        for room in ROOMS
        for path in _files(room)
        if not str(path.relative_to(ROOT)).startswith(MAY_HOLD_WORDS)
        for line, literal in words_in(path.read_text("utf-8"))
    ]
    assert found == [], (
        "these words belong into a .toml of rules/words or knowledge/words:\n" + "\n".join(found)
    )


def test_words_in_code_are_found() -> None:
    code = """
'''Docstrings may say 什么 they like.'''
KINDS = ("noise", "table")
FRUIT = {"banana", "noise"}
BY_FRUIT = {"cherry": 1}
PATTERN = re.compile(r"\\bplum|of\\b")
HAN = "苹果"
SAID = Text("没有苹果", "no apples")
LISTED = listed("pear noise")
def is_apple(word): return word == "apple" or word in ("noise",)
"""
    assert sorted(words_in(code)) == [
        (4, "banana"),
        (5, "cherry"),
        (6, r"\bplum|of\b"),
        (7, "苹果"),
        (9, "pear noise"),
        (10, "apple"),
    ]
