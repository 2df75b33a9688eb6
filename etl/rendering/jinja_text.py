"""Text in dbt's files that Jinja gives back as it is."""

import re

_OPENING = re.compile(r"\{(?=[{%#])")
# Carriage returns too: `raw_text` puts an expression in their place, which begins with a brace.
_OPENING_IN_YAML = re.compile(r"\{(?=[{%#\r])")
# Braces too, so that nobody who looks for tokens finds any in a literal.
_ESCAPES = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "\r": "\\r", "\n": "\\n", "{": "\\x7b", "}": "\\x7d"}
)
_TOKEN = re.compile(r"\{[{%#]")


def has_jinja(text: str) -> bool:
    """Tell whether Jinja would take a part of the text for its own."""
    return _TOKEN.search(text) is not None


def jinja_string(text: str) -> str:
    """Return a literal inside an expression of Jinja."""
    return "'" + text.translate(_ESCAPES) + "'"


def raw_text(text: str) -> str:
    """Return a text of a YAML file that Jinja gives back: each token stands in a block of its own,
    so that the text itself can end none.
    """
    shielded = _OPENING_IN_YAML.sub("{% raw %}{{% endraw %}", text)
    # Jinja makes a plain line end of a carriage return that stands outside of its expressions.
    return shielded.replace("\r", "{{ '\\r' }}")


def cut_inside_tokens(text: str) -> list[str]:
    """Cut a text within each token of Jinja, so that no part of it has one."""
    parts: list[str] = []
    start = 0
    for opening in _OPENING.finditer(text):
        parts.append(text[start : opening.end()])
        start = opening.end()

    return [*parts, text[start:]]
