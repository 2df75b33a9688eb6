"""Imports point downhill, no import is circular, and each name stands for one thing."""

import ast
import gc
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Each may import itself and what stands before it.
LAYERS = (
    "common",
    "app_config",
    "postgres",
    "sqltree",
    "guard",
    "llm",
    "store",
    "databases",
    "files",
    "knowledge",
    "rules",
    "etl",
    "agent",
    "api",
    "serving",
    "unified_api",
    "terminal",
)
# The same inside a layer: its packages from the lowest to the highest. A module that lies in the
# layer itself may be listed among them; one that is not counts as part of whoever imports it.
ROOMS: dict[str, tuple[str, ...]] = {
    "common": (),
    "postgres": (),
    "sqltree": (),
    "guard": ("row_rules",),
    "llm": (),
    "store": (),
    "databases": ("demo", "embedded", "engines", "catalog", "execution", "sources"),
    "files": ("reading", "loading"),
    "knowledge": (
        "words",
        "index",
        "language",
        "values",
        "semantic",
        "tables",
        "results",
        "experience",
        "learning",
    ),
    "rules": (
        "words",
        "schema",
        "linking",
        "query",
        "reading",
        "sql",
        "composing",
        "conversation",
        "answering",
        "skills",
    ),
    "etl": (
        "schemas",
        "meaning",
        "binding",
        "clauses",
        "planning",
        "rendering",
        "scratch",
        "evidence",
        "lineage",
        "assets",
    ),
    "agent": (
        "answers",
        "analysis",
        "question",
        "progress",
        "token_batches",
        "experience",
        "value_lookup",
        "thinking",
        "budgets",
        "extensions",
        "tools",
        "flows",
        "webhooks",
        "runs",
        "services",
        "bootstrap",
    ),
    "api": ("access", "sockets", "models", "vanna", "mcp", "chat_completions", "agui"),
    "serving": ("doctor",),
    "terminal": (),
}
# Modules that play the same role in each flow.
ROLES = {"context", "graph", "labels", "nodes", "routing", "state"}

MOST_FLOORS = 12  # modules of the rules that import one another in a chain
# Classes that only `Datasources.open` may construct.
GUARDED = {"PostgresDatabase", "GuardedDatabase", "AuditedDatabase"}
# Settings are given to whoever needs them; only these read them.
READ_SETTINGS = {
    "agent.bootstrap",
    "unified_api",
    "api.keys",
    "knowledge.load",
    "llm.check_model",
    "llm.replay",
    "serving.doctor.examination",
    "serving.doctor.setting_checks",
    "knowledge.semantic.__main__",
}
PATHS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for layer in LAYERS
    for path in (*ROOT.glob(f"{layer}.py"), *(ROOT / layer).rglob("*.py"))
}


# Read from the text, which takes a tenth of the time that a tree does.
_PUBLIC_CLASS = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)
_IMPORT_OF_TESTS = re.compile(
    r"^\s*from tests\b[\w.]* import (?:\([^)]*\)|.*)|^\s*import tests\b.*", re.MULTILINE
)
_TEST_MODULE = re.compile(r"\btest_\w+")
_ARGS = re.compile(r"^Args:\n(.*?)(?:^\w|\Z)", re.MULTILINE | re.DOTALL)
_ARG = re.compile(r"^    (\w+(?:, \w+)*):", re.MULTILINE)


def _tree(path: Path) -> ast.Module:
    """The file's syntax tree, made while no garbage is collected.

    Until Python 3.12 `ast.parse` counts its depth in one place for all threads, and fails when
    another thread parses in between ("AST constructor recursion depth mismatch"). That takes a
    finalizer, in which threads may switch.
    """
    gc.disable()
    try:
        return ast.parse(path.read_text("utf-8"))
    finally:
        gc.enable()


def _imported(path: Path) -> Iterator[str]:
    """Our modules that the file imports when it is imported; of `from a import b`, `a.b` where that
    is a module.
    """
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
        module: {name for name in _imported(path) if name in PATHS and name != module}
        for module, path in PATHS.items()
    }


def _floor(module: str) -> int:
    return LAYERS.index(module.split(".")[0])


def _package(module: str) -> str:
    """The entry of `ROOMS` that the module belongs to; "" for a module that has none."""
    layer, *rest = module.split(".")
    return rest[0] if rest and rest[0] in ROOMS.get(layer, ()) else ""


def _needed_in_room(module: str) -> Iterator[tuple[str, str]]:
    """The packages of its layer that the module imports, each with the module that it imports.

    A module without a package is looked through: what it imports counts as imported here.
    """
    layer = module.split(".")[0]
    pending, seen = [module], {module}
    while pending:
        for name in _imports()[pending.pop()]:
            if name in seen or name.split(".")[0] != layer:
                continue
            seen.add(name)
            if _package(name):
                yield _package(name), name
            elif PATHS[name].name != "__init__.py":
                pending.append(name)


def _twice(names: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: places for name, places in names.items() if len(places) > 1}


def test_imports_point_downhill() -> None:
    uphill = [
        f"{module} imports {name}"
        for module, names in _imports().items()
        for name in names
        if _floor(name) > _floor(module)
    ]
    assert uphill == []


def test_every_package_has_a_place_in_its_room() -> None:
    folders = {
        layer: {path.parent.name for path in (ROOT / layer).glob("*/__init__.py")}
        for layer in LAYERS
        if (ROOT / layer).is_dir()
    }
    listed = {
        layer: {name for name in room if (ROOT / layer / name).is_dir()}
        for layer, room in ROOMS.items()
    }
    assert listed == folders


def test_packages_import_downhill() -> None:
    uphill = []
    for module in PATHS:
        layer, package = module.split(".")[0], _package(module)
        if not package:
            continue
        room = ROOMS[layer]
        for other, name in _needed_in_room(module):
            is_own = other == package and name in _imports()[module]
            if not is_own and room.index(other) >= room.index(package):
                uphill.append(f"{module} imports {name}")
    assert uphill == []


def test_no_flow_imports_another() -> None:
    flows = {path.parent.name for path in (ROOT / "agent" / "flows").glob("*/__init__.py")}
    strangers = [
        f"{module} imports {name}"
        for flow in flows
        for module, names in _imports().items()
        for name in names
        if module.startswith(f"agent.flows.{flow}.")
        and name.split(".")[:2] == ["agent", "flows"]
        and {*name.split(".")[2:3]} & (flows - {flow})
    ]
    assert strangers == []


def test_modules_have_names_of_their_own() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in PATHS.values():
        plays_role = path.stem in ROLES and path.is_relative_to(ROOT / "agent" / "flows")
        if not path.stem.startswith("__") and not plays_role:
            places[path.stem].append(str(path.relative_to(ROOT)))
    assert _twice(places) == {}


def test_public_classes_have_names_of_their_own() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in (*PATHS.values(), *(ROOT / "benchmarks").rglob("*.py")):
        for name in _PUBLIC_CLASS.findall(path.read_text("utf-8")):
            places[name].append(str(path.relative_to(ROOT)))
    assert _twice(places) == {}


def test_enumerations_stand_in_one_order() -> None:
    """`typing` keeps `list[Literal["a", "b"]]` also for a list of ["b", "a"], because they are
    equal: which of both the OpenAPI document shows would depend on what was imported first.
    """
    orders: dict[frozenset[object], set[tuple[object, ...]]] = defaultdict(set)
    for path in PATHS.values():
        if "Literal[" not in path.read_text("utf-8"):
            continue
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
                words = ast.literal_eval(node.slice)
                listed = words if isinstance(words, tuple) else (words,)
                orders[frozenset(listed)].add(listed)
    assert [order for order in orders.values() if len(order) > 1] == []


def _parameters(node: ast.AST) -> set[str]:
    """The names that a function takes, or of a class, its constructor and its fields."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return {inner.arg for inner in ast.walk(node.args) if isinstance(inner, ast.arg)}
    names: set[str] = set()
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
            names |= _parameters(inner)
        elif isinstance(inner, ast.AnnAssign):
            names.add(ast.unparse(inner.target))
    return names


def test_docstrings_explain_parameters_that_there_are() -> None:
    strangers = []
    for path in PATHS.values():
        if "    Args:\n" not in path.read_text("utf-8"):
            continue
        for node in ast.walk(_tree(path)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            explained = _ARGS.search(ast.get_docstring(node) or "")
            for names in _ARG.findall(explained[1] if explained else ""):
                strangers += [
                    (str(path.relative_to(ROOT)), node.name, name)
                    for name in names.split(", ")
                    if name not in _parameters(node)
                ]
    assert strangers == []


def test_rules_stay_on_few_floors() -> None:
    needed = {
        module: {
            name
            for name in names
            if name.startswith("rules.") and PATHS[name].name != "__init__.py"
        }
        for module, names in _imports().items()
        if module.startswith("rules.")
    }
    floors: dict[str, int] = {}
    for module in TopologicalSorter(needed).static_order():
        floors[module] = 1 + max((floors[name] for name in needed[module]), default=0)
    assert max(floors.values()) <= MOST_FLOORS


def test_nobody_makes_a_database_past_its_guard() -> None:
    """Elsewhere, a database comes from `Datasources.open` alone: proven, audited, by the actor's
    rights.
    """
    places = [
        path for layer in (*LAYERS, "tests", "benchmarks") for path in (ROOT / layer).rglob("*.py")
    ]
    makers = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in (*places, *ROOT.glob("*.py"))
        if path.relative_to(ROOT).parts[0] != "databases"
        and any(name in path.read_text("utf-8") for name in GUARDED)
        for call in ast.walk(_tree(path))
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] in GUARDED
    ]
    assert makers == []
    importers = [
        module for module, names in _imports().items() if "databases.execution.postgres" in names
    ]
    assert importers == ["databases.datasources", "databases.execution.guarded"]


def test_settings_are_read_where_things_are_put_together() -> None:
    readers = {module for module, names in _imports().items() if "app_config" in names}
    assert readers <= READ_SETTINGS


def test_no_module_waits_for_itself() -> None:
    needs = {
        module: {one for name in names for one in (name, *_packages(name))}
        - {module, *_packages(module)}
        for module, names in _imports().items()
    }
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        raise AssertionError(" → ".join(reversed(error.args[1]))) from None


def test_no_test_module_imports_another() -> None:
    borrowed = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for folder in ("tests", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        for found in _IMPORT_OF_TESTS.finditer(path.read_text("utf-8"))
        if _TEST_MODULE.search(found[0])
    ]
    assert borrowed == [], "what tests share stands in tests/support"
