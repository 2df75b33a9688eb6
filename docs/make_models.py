"""Writes the endpoints of llm/endpoints.json into the tables of models.md.

Run `python docs/make_models.py` after a change of them; a test compares.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from llm.known_endpoints import KnownEndpoint, known_endpoints  # noqa: E402 - the path is set above

PAGE = ROOT / "docs" / "models.md"
_TABLE = re.compile(r"(?<=<!-- endpoints -->\n).*?(?=<!-- end of endpoints -->)", re.DOTALL)


def page() -> str:
    """Return models.md with its table made anew."""
    text = _settings() + "\n" + _abilities()
    return _TABLE.sub(lambda _: text, PAGE.read_text("utf-8"))


def _settings() -> str:
    rows = [
        "| endpoint | settings | `LLM_THINKING=off` sends | what it needs |\n|---|---|---|---|\n"
    ]
    for endpoint in known_endpoints():
        settings = "<br>".join(f"`{name}={text}`" for name, text in endpoint.settings.items())
        cells = (endpoint.name, settings, _switch(endpoint), endpoint.needs)
        rows.append(f"| {' | '.join(cells)} |\n")
    return "".join(rows)


def _switch(endpoint: KnownEndpoint) -> str:
    if "off" not in endpoint.thinking:
        return "nothing: it has no switch"
    return f"`{json.dumps(endpoint.thinking['off'])}`"


def _abilities() -> str:
    rows = ["| endpoint | tools | JSON mode | usage in streams | length of replies |\n"]
    rows.append("|---|---|---|---|---|\n")
    for endpoint in known_endpoints():
        cells = (
            endpoint.name,
            endpoint.tools,
            endpoint.json_mode,
            endpoint.usage_in_streams,
            endpoint.reply_limit,
        )
        rows.append(f"| {' | '.join(cells)} |\n")
    return "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
