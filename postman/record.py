"""Keeps the replies of a newman run as the examples that the collection shows.

python postman/record.py REPORT.json    the file that newman's json reporter has written
"""

import json
import sys
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).resolve().parent / "replies" / "recorded.json"
_MOST_ITEMS = 3  # of a list that is kept
_MOST_CHARS = 4_000  # of a reply that is no JSON


def recorded(report: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to each request of the report by the request's id."""
    kept = {}
    for execution in report["run"]["executions"]:
        reply = execution.get("response")
        if reply is not None:
            kept[execution["item"]["id"]] = _kept(reply)
    return dict(sorted(kept.items()))


def _kept(reply: dict[str, Any]) -> dict[str, Any]:
    headers = {header["key"].lower(): header["value"] for header in reply["header"]}
    media = headers.get("content-type", "")
    return {"status": reply["code"], "media": media, "body": _body(reply, media)}


def _body(reply: dict[str, Any], media: str) -> str:
    data = bytes(reply.get("stream", {}).get("data", ()))
    if media.startswith("application/json"):
        return json.dumps(_shortened(json.loads(data)), ensure_ascii=False, indent=2)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"({len(data)} bytes)"
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_shortened(one) for one in value[:_MOST_ITEMS]]
    return value


if __name__ == "__main__":
    report = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    text = json.dumps(recorded(report), ensure_ascii=False, indent=1)
    RECORDED.write_text(text + "\n", "utf-8")
    sys.stdout.write(f"{RECORDED.name}\n")
