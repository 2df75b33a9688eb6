"""Imports point downhill, and no import is circular."""

import ast
import gc
import tokenize
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Each may import itself and what stands before it.
LAYERS = ("app_config", "common", "databases", "knowledge", "rules", "agent", "api", "serving", "unified_api")
# The same inside a layer: packages from the lowest to the highest, then the layer's own modules.
ROOMS = {
    "rules": ("words", "schema", "linking", "query", "reading", "sql", "composing", "conversation", "answering"),
}
MOST_FLOORS, MOST_LINES = 12, 350  # modules of the rules that import one another in a chain, and lines of one
MOST_CODE = 10_500  # lines of code in all modules of the rules, without docstrings, comments and blank ones
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
# Classes that only `Datasources.open` may construct.
GUARDED = {"PostgresDatabase", "GuardedDatabase", "AuditedDatabase"}
# Settings are given to whoever needs them; only these read them.
READ_SETTINGS = {"agent.bootstrap", "unified_api", "api.keys", "knowledge.load", "knowledge.semantic.__main__"}
PATHS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for layer in LAYERS
    for path in (*ROOT.glob(f"{layer}.py"), *(ROOT / layer).rglob("*.py"))
}


def _tree(path: Path) -> ast.Module:
    """The file's syntax tree, made while no garbage is collected.

    Until Python 3.12 `ast.parse` counts its depth in one place for all threads, and fails when another thread parses in
    between ("AST constructor recursion depth mismatch"). That takes a finalizer, in which threads may switch.
    """
    gc.disable()
    try:
        return ast.parse(path.read_text("utf-8"))
    finally:
        gc.enable()


def _imported(path: Path) -> Iterator[str]:
    """Our modules that the file imports when it is imported; of `from a import b`, `a.b` where that is a module."""
    pending: list[ast.AST] = [_tree(path)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pending.extend(ast.iter_child_nodes(node))


def _packages(module: str) -> Iterator[str]:
    """The packages that are imported before the module."""
    parts = module.split(".")
    return (".".join(parts[:length]) for length in range(1, len(parts)))


@cache
def _imports() -> dict[str, set[str]]:
    """Each of our modules with those that it imports; read by the first test that asks."""
    return {
        module: {name for name in _imported(path) if name in PATHS and name != module} for module, path in PATHS.items()
    }


def _floor(module: str) -> int:
    return LAYERS.index(module.split(".")[0])


def _room(module: str) -> int:
    """How high the module's package is in its layer; a layer's own modules stand above its packages."""
    layer, *rest = module.split(".")
    rooms = ROOMS[layer]
    return rooms.index(rest[0]) if rest and rest[0] in rooms else len(rooms)


def test_imports_point_downhill() -> None:
    uphill = [
        f"{module} imports {name}"
        for module, names in _imports().items()
        for name in names
        if _floor(name) > _floor(module)
    ]
    assert uphill == []


def test_rules_pass_a_question_on_in_one_direction() -> None:
    uphill = [
        f"{module} imports {name}"
        for module, names in _imports().items()
        for name in names
        if module.startswith("rules.") and name.startswith("rules.") and _room(name) > _room(module)
    ]
    assert uphill == []


def test_rules_stay_in_small_modules_on_few_floors() -> None:
    needed = {
        module: {name for name in names if name.startswith("rules.") and PATHS[name].name != "__init__.py"}
        for module, names in _imports().items()
        if module.startswith("rules.")
    }
    floors: dict[str, int] = {}
    for module in TopologicalSorter(needed).static_order():
        floors[module] = 1 + max((floors[name] for name in needed[module]), default=0)
    assert max(floors.values()) <= MOST_FLOORS
    lines = {module: len(PATHS[module].read_text("utf-8").splitlines()) for module in needed}
    assert {module: count for module, count in lines.items() if count > MOST_LINES} == {}


def _lines_of_code(path: Path) -> int:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    bodies = [node.body for node in ast.walk(_tree(path)) if isinstance(node, documented)]
    told = [body[0] for body in bodies if body and isinstance(body[0], ast.Expr)]
    docstrings = {line for one in told for line in range(one.lineno, (one.end_lineno or 0) + 1)}
    with path.open("rb") as file:
        tokens = [token for token in tokenize.tokenize(file.readline) if token.type not in NO_CODE]
    lines = {line for token in tokens[1:] for line in range(token.start[0], token.end[0] + 1)}  # the first is no text
    return len(lines - docstrings)


def test_rules_have_no_more_code_than_agreed() -> None:
    assert sum(_lines_of_code(path) for module, path in PATHS.items() if module.startswith("rules")) <= MOST_CODE


def test_nobody_makes_a_database_past_its_guard() -> None:
    """Elsewhere, a database comes from `Datasources.open` alone: proven, audited, by the actor's rights."""
    places = [path for layer in (*LAYERS, "tests", "benchmarks") for path in (ROOT / layer).rglob("*.py")]
    makers = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in (*places, *ROOT.glob("*.py"))
        if path.relative_to(ROOT).parts[0] != "databases" and any(name in path.read_text("utf-8") for name in GUARDED)
        for call in ast.walk(_tree(path))
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] in GUARDED
    ]
    assert makers == []
    importers = [module for module, names in _imports().items() if "databases.postgres" in names]
    assert importers == ["databases.datasources", "databases.guarded"]


def test_settings_are_read_where_things_are_put_together() -> None:
    readers = {module for module, names in _imports().items() if "app_config" in names}
    assert readers <= READ_SETTINGS


def test_no_module_waits_for_itself() -> None:
    needs = {
        module: {one for name in names for one in (name, *_packages(name))} - {module, *_packages(module)}
        for module, names in _imports().items()
    }
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        raise AssertionError(" → ".join(reversed(error.args[1]))) from None
