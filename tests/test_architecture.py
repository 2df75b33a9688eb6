"""Imports point downhill, and no module needs, while it is imported, one that is waiting for it."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("common", "agent", "api", "unified_api")  # each may import itself and what stands before it
PATHS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "unified_api.py", *(path for layer in LAYERS[:-1] for path in (ROOT / layer).rglob("*.py")))
}


def _imported(path: Path) -> Iterator[str]:
    """Our modules that the file imports when it is imported; of `from a import b`, `a.b` where that is a module."""
    pending: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
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


IMPORTS = {
    module: {name for name in _imported(path) if name in PATHS and name != module} for module, path in PATHS.items()
}


def test_imports_point_downhill() -> None:
    uphill = [
        f"{module} imports {name}"
        for module, names in IMPORTS.items()
        for name in names
        if LAYERS.index(name.split(".")[0]) > LAYERS.index(module.split(".")[0])
    ]
    assert uphill == []


def test_no_module_waits_for_itself() -> None:
    needs = {
        module: {one for name in names for one in (name, *_packages(name))} - {module, *_packages(module)}
        for module, names in IMPORTS.items()
    }
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        raise AssertionError(" → ".join(reversed(error.args[1]))) from None
