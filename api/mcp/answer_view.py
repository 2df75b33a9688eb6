"""The answer's rows and chart as one HTML document, which clients of MCP show in a sandbox.

It is put together from the page's own modules, styles and drawings, so that nothing has to be
fetched from there and nothing is kept twice.
"""

import re
from functools import cache
from pathlib import Path

URI = "ui://citu/answer"
MEDIA_TYPE = "text/html;profile=mcp-app"
EXTENSION = "io.modelcontextprotocol/ui"

_ROOT = Path(__file__).resolve().parents[2]
_STATIC = _ROOT / "static"
_ENTRY = "mcp_answer"
_LIBRARY = "vendor/chart-4.6.1.min.js"
_STYLES = ("base.css", "turn.css")
# Where a module would be; nothing is fetched from there.
_NOWHERE = '"https://answer.invalid/static/module.js"'
_IMPORT = re.compile(r'^import \{([^{}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const|let) (\w+))", re.MULTILINE)
_DRAWINGS = re.compile(r"<svg hidden(?:(?!<svg).)*?</svg>", re.DOTALL)


@cache
def answer_view() -> str:
    """Return the HTML document that shows an answer in a client's sandbox."""
    page = (_ROOT / "templates" / "index.html").read_text("utf-8")
    drawings = _DRAWINGS.search(page)
    assert drawings is not None, "the page's drawings are its first hidden svg"
    styles = "\n".join(_static(name) for name in _STYLES)
    return _DOCUMENT.format(
        styles=styles,
        dark=_static("dark.css"),
        drawings=drawings[0],
        early=_inline(_static("early.js")),
        library=_inline(_static(_LIBRARY)),
        modules=_inline(_modules()),
    )


_DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Citu</title>
<style>{styles}
body {{ padding: 0.75rem; }}
.turn:last-child {{ min-height: 0; }}</style>
<style id="dark-colours">{dark}</style>
<script>{early}</script>
</head>
<body>
{drawings}
<main class="outcome" id="answer" aria-live="polite"></main>
<script>{library}</script>
<script>{modules}</script>
</body>
</html>
"""


def _static(name: str) -> str:
    return (_STATIC / name).read_text("utf-8")


def _inline(script: str) -> str:
    """Return a script that nothing in it can end early."""
    return re.sub("</(script)", r"<\\/\1", script, flags=re.IGNORECASE).replace("<!--", "<\\!--")


def _modules() -> str:
    """Return the modules of the view, each in a function of its own, after those it needs."""
    ordered: dict[str, str] = {}
    _collect(_ENTRY, ordered)
    return '"use strict";\n' + "\n".join(ordered.values())


def _collect(name: str, ordered: dict[str, str]) -> None:
    source = _static(f"{name}.js")
    for imported in _IMPORT.finditer(source):
        if imported[2] not in ordered:
            _collect(imported[2], ordered)

    body = _IMPORT.sub(_as_constant, source).replace("import.meta.url", _NOWHERE)
    exported = ", ".join(export[2] for export in _EXPORT.finditer(body))
    body = _EXPORT.sub(r"\1", body)
    ordered[name] = f"const module_{name} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


def _as_constant(imported: re.Match[str]) -> str:
    names = imported[1].replace(" as ", ": ")
    return f"const {{{names}}} = module_{imported[2]};\n"
