"""Finds every pattern of the product, and the texts that take each of them longest.

A pattern is slow where a repeat may begin at many places or end at many: the texts repeat what a
repeat repeats, what stands before it, and both, and leave out what would end the match.
"""

import ast
import dataclasses
import functools
import importlib
import pkgutil
import re
import types
from collections.abc import Iterable, Iterator
from itertools import islice, product
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROOMS = (
    "agent",
    "api",
    "common",
    "databases",
    "etl",
    "files",
    "guard",
    "knowledge",
    "llm",
    "postgres",
    "rules",
    "serving",
    "sqltree",
    "store",
    "terminal",
)
_PROGRAMS = ("app_config", "unified_api")
_FUNCTIONS = frozenset(
    ("compile", "match", "search", "sub", "subn", "split", "findall", "finditer", "fullmatch")
)
_FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.ASCII | re.VERBOSE
_LONG = 12  # a repeat of fewer can't take long by itself
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_TEXT = "abc"  # stands for what a pattern takes from its caller


@dataclasses.dataclass(frozen=True)
class Found:
    """A pattern, where the product has it, and what it is surely read by (empty: by anything)."""

    place: str
    pattern: re.Pattern[Any]
    read_by: str = ""


def patterns() -> list[Found]:
    """Return every pattern of the product, each once."""
    found: dict[re.Pattern[Any], Found] = {}
    seen: dict[int, object] = {}
    for module in modules():
        for place, pattern in _held(module, seen):
            found.setdefault(pattern, Found(place, pattern))
        for one in _written(module):
            found.setdefault(one.pattern, one)
    return list(found.values())


def modules() -> Iterator[types.ModuleType]:
    """Yield every module of the product, imported."""
    for room in ROOMS:
        package = importlib.import_module(room)
        yield package
        for module in pkgutil.walk_packages(package.__path__, f"{room}."):
            yield importlib.import_module(module.name)
    yield from map(importlib.import_module, _PROGRAMS)


def _held(
    module: types.ModuleType, seen: dict[int, object]
) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Yield the patterns that are kept in the module, however deep, and in none before it.

    Args:
        seen: what was looked at, by identity, of this module and those before it.
    """
    todo = [(f"{module.__name__}.{name}", value) for name, value in vars(module).items()]
    while todo:
        place, value = todo.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, re.Pattern):
            yield place, value
        else:
            todo.extend((place, part) for part in _parts(value))


def _parts(value: object) -> Iterable[object]:
    """Return what a value is made of, as far as it is the product's own."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset | types.MappingProxyType):
        return list(value)
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, types.BuiltinMethodType | types.MethodType):
        return [value.__self__]
    if isinstance(value, types.FunctionType):
        if not _is_ours(value):
            return ()
        return [*(value.__defaults__ or ()), *map(_content, value.__closure__ or ())]
    if hasattr(value, "__wrapped__"):
        return [value.__wrapped__]
    if isinstance(value, type):
        return list(vars(value).values()) if _is_ours(value) else ()
    if _is_ours(type(value)):
        slots = [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]
        return [*slots, *getattr(value, "__dict__", {}).values()]
    return ()


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _is_ours(kind: type | types.FunctionType) -> bool:
    return str(kind.__module__).split(".")[0] in (*ROOMS, *_PROGRAMS)


def _written(module: types.ModuleType) -> Iterator[Found]:
    """Yield the patterns that the module's functions write where they use them."""
    if module.__file__ is None:
        return
    source = Path(module.__file__).read_text(encoding="utf-8")
    if "re." not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if _is_call_of_re(node):
            assert isinstance(node, ast.Call)
            text = _evaluated(node.args[0], vars(module))
            if text is not None:
                assert isinstance(node.func, ast.Attribute)
                place = f"{module.__name__}:{node.lineno}"
                read_by = node.func.attr if node.func.attr in ("match", "fullmatch") else ""
                yield Found(place, re.compile(text, _flags(node)), read_by)


def _is_call_of_re(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = node.func.value
    return isinstance(owner, ast.Name) and owner.id == "re" and node.func.attr in _FUNCTIONS


def _evaluated(node: ast.expr, names: dict[str, Any]) -> Any:
    """Return the text of a pattern; what only a run knows in it is a plain word."""
    try:
        text = eval(compile(ast.Expression(node), "pattern", "eval"), dict(names))
    except NameError:
        text = _with_words(node, names)
    return text if isinstance(text, str | bytes) else None


def _with_words(node: ast.expr, names: dict[str, Any]) -> str | None:
    if not isinstance(node, ast.JoinedStr):
        return None
    texts = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            texts.append(str(part.value))
        elif isinstance(part, ast.FormattedValue):
            known = _evaluated(part.value, names)
            texts.append(known if isinstance(known, str) else _TEXT)
    return "".join(texts)


def _flags(node: ast.Call) -> int:
    flags = 0
    for part in (*node.args[1:], *(keyword.value for keyword in node.keywords)):
        for name in ast.walk(part):
            if isinstance(name, ast.Attribute) and hasattr(re.RegexFlag, name.attr):
                flags |= re.RegexFlag[name.attr]
    return flags


def attacks(pattern: re.Pattern[Any]) -> list[tuple[str, str, str]]:
    """Return the texts that may take the pattern long, each as beginning, repeated unit and end."""
    source = pattern.pattern
    text = source.decode("latin-1") if isinstance(source, bytes) else source
    tree = parser.parse(text, pattern.flags & _FLAGS)
    whole = _samples(tree)
    units: dict[tuple[str, str, str], None] = {}
    for before, body, after in _repeats(tree, [""], [""]):
        for prefix, unit in product(before[:3], body):
            for end in ("", "\0", *(one[:-1] for one in after[:1])):
                units[prefix, unit, end] = None
            for rest in ("", *after[:1]):
                units["", prefix + unit + rest[:-1], ""] = None
                units["", prefix + unit + rest, "\0"] = None
        for prefix in before:
            units["", prefix, ""] = None
    for one in whole[:4]:
        units["", one, ""] = None
        units["", one[:-1], ""] = None
        units["", one + " ", ""] = None
    return [parts for parts in units if parts[1]]


def _repeats(
    tree: Any, before: list[str], after: list[str]
) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Yield each long repeat: samples of what stands before it, of what it repeats, and after
    it.
    """
    items = list(tree)
    tails = [after]
    for item in reversed(items):
        tails.append(_joined(_item_samples(item), tails[-1]))
    tails.reverse()
    for index, (kind, value) in enumerate(items):
        behind = tails[index + 1]
        if kind in _REPEATS and value[1] >= _LONG:
            yield before, _samples(value[2], wide=True), behind
        for part in _inner_trees(kind, value):
            is_assertion = kind in (codes.ASSERT, codes.ASSERT_NOT)
            yield from _repeats(part, before, [""] if is_assertion else behind)
        before = _joined(before, _item_samples((kind, value)))


def _inner_trees(kind: Any, value: Any) -> list[Any]:
    """Return the trees inside an item of a tree."""
    if kind in _REPEATS:
        return [value[2]]
    if kind is codes.SUBPATTERN:
        return [value[3]]
    if kind is codes.ATOMIC_GROUP:
        return [value]
    if kind in (codes.ASSERT, codes.ASSERT_NOT):
        return [value[1]]
    if kind is codes.BRANCH:
        return list(value[1])
    if kind is codes.GROUPREF_EXISTS:
        return [branch or () for branch in value[1:]]
    return []


def _joined(ones: list[str], others: list[str]) -> list[str]:
    return list(dict.fromkeys(islice((a + b for b, a in product(others, ones)), 6)))


def _samples(tree: Any, wide: bool = False) -> list[str]:
    """Return texts that the tree matches, a few."""
    samples = [""]
    for item in tree:
        found = _item_samples(item, wide)
        samples = list(dict.fromkeys(a + b for a, b in product(samples, found)))
        samples = samples[: 24 if wide else 6]
    return samples


_OF_CATEGORY = {
    codes.CATEGORY_DIGIT: "1",
    codes.CATEGORY_NOT_DIGIT: "a -",
    codes.CATEGORY_SPACE: " \n\t",
    codes.CATEGORY_NOT_SPACE: "a1-",
    codes.CATEGORY_WORD: "a1_汉",
    codes.CATEGORY_NOT_WORD: " -.",
}
_ANY = "a1 \n\t_-.,'\"()[]<>*/`汉"


def _item_samples(item: Any, wide: bool = False) -> list[str]:
    kind, value = item
    if kind is codes.LITERAL:
        return [chr(value)]
    if kind is codes.NOT_LITERAL:
        return [one for one in _ANY if ord(one) != value][: 12 if wide else 2]
    if kind is codes.ANY:
        return list("a1 -(") if wide else ["a"]
    if kind is codes.IN:
        return _of_set(value)[: 12 if wide else 2]
    if kind in _REPEATS:
        least = min(value[0], 20)
        once = _samples(value[2], wide)
        return [one * least for one in once] if least else ["", *once[:5]]
    return _group_samples(kind, value, wide)


def _group_samples(kind: Any, value: Any, wide: bool) -> list[str]:
    if kind is codes.SUBPATTERN:
        return _samples(value[3], wide)
    if kind is codes.ATOMIC_GROUP:
        return _samples(value, wide)
    if kind is codes.BRANCH:
        found = [sample for branch in value[1] for sample in _samples(branch)[:2]]
        return list(dict.fromkeys(found))[: 24 if wide else 6]
    if kind is codes.GROUPREF_EXISTS:
        return _samples(value[1], wide)
    return [""]


def _of_set(items: Any) -> list[str]:
    negated = items[0][0] is codes.NEGATE
    if negated:
        return [one for one in _ANY if not _has(items[1:], one)] or ["a"]
    found: list[str] = []
    for kind, value in items:
        if kind is codes.LITERAL:
            found.append(chr(value))
        elif kind is codes.RANGE:
            found.append(chr(value[0]))
        else:
            found.extend(_OF_CATEGORY[value])
    return list(dict.fromkeys(found))


def _has(items: Any, character: str) -> bool:
    for kind, value in items:
        if kind is codes.LITERAL and value == ord(character):
            return True
        if kind is codes.RANGE and value[0] <= ord(character) <= value[1]:
            return True
        if kind is codes.CATEGORY and character in _OF_CATEGORY[value]:
            return True
    return False
