"""Makes the Postman collection from the scenarios beside this file and from api/openapi.json.

Run `python postman/make.py` after a change of either; a test compares the collection with what it
would write. Ids are derived from names, so that a change shows only where it is.
"""

import json
import re
import sys
import uuid
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

HERE = Path(__file__).resolve().parent
COLLECTION = HERE / "citu.postman_collection.json"
_IDS = uuid.UUID("6f1f6d3a-6a0e-5a57-9d39-4c6a0f9a8f10")
_DESCRIPTION = (
    "Every way of asking Citu, with assertions on the contract of docs/api.md. Needs a running "
    "Citu on the demo database and works without a language model. `postman/run.sh` starts one "
    "and runs everything by newman."
)
_JSON_BODY = {"raw": {"language": "json"}}
_READ_ANSWER = "const answer = pm.response.json().data;"
_READ_FRAMES = "const frames = JSON.parse(pm.variables.get('frames'));"

Json = dict[str, Any]


def collection() -> Json:
    """Return the Postman collection as its JSON value."""
    scenarios = yaml.safe_load((HERE / "scenarios.yaml").read_text("utf-8"))
    document = json.loads((HERE.parent / "api" / "openapi.json").read_text("utf-8"))
    addresses = {
        operation["operationId"]: (method.upper(), path)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    recorded = json.loads((HERE / "replies" / "recorded.json").read_text("utf-8"))
    maker = _Maker(addresses, scenarios["checks"], recorded)
    return {
        "info": {
            "_postman_id": _id("collection"),
            "name": "Citu",
            "description": _DESCRIPTION,
            "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json",
        },
        "item": [maker.folder(folder) for folder in scenarios["folders"]],
        "event": [_script("test", scenarios["shared_tests"])],
        "variable": [{"key": key, "value": value} for key, value in scenarios["variables"].items()],
        "auth": {
            "type": "bearer",
            "bearer": [{"key": "token", "value": "{{api_key}}", "type": "string"}],
        },
    }


class _Maker:
    """Makes requests of scenarios.

    Args:
        addresses: method and path of each operation, by its id.
        checks: scripts by the names that scenarios call them by.
        recorded: what `record.py` has written, by the ids of requests.
    """

    def __init__(
        self,
        addresses: Mapping[str, tuple[str, str]],
        checks: Mapping[str, str],
        recorded: Mapping[str, Json],
    ) -> None:
        self._addresses = addresses
        self._recorded = recorded
        self._checks = checks

    def folder(self, scenario: Json) -> Json:
        name = scenario["folder"]
        requests = [self.request(name, request) for request in scenario["requests"]]
        return {
            "id": _id(name),
            "name": name,
            "description": scenario["description"],
            "item": requests,
        }

    def request(self, folder: str, scenario: Json) -> Json:
        name = scenario["name"]
        request = self._sent(scenario)
        events = [_script("test", self._tests(scenario))]
        if "before" in scenario:
            events.append(_script("prerequest", scenario["before"]))
        made: Json = {
            "id": _id(f"{folder}/{name}"),
            "name": name,
            "event": events,
            "request": {**request, "description": scenario["description"]},
            "response": [],
        }
        if "reply" in scenario:
            made["response"].append(_reply(made["id"], scenario["reply"], request))
        elif made["id"] in self._recorded:
            made["response"].append(_recorded(made["id"], self._recorded[made["id"]], request))
        return made

    def _sent(self, scenario: Json) -> Json:
        method, path = self._address(scenario)
        for part, value in scenario.get("path", {}).items():
            path = path.replace(f"{{{part}}}", value)
        headers = dict(scenario.get("headers", {}))
        sent: Json = {"method": method, "header": [], "url": _url(path, scenario.get("query", {}))}
        if "body" in scenario:
            headers = {"Content-Type": "application/json", **headers}
            text = json.dumps(scenario["body"], ensure_ascii=False, indent=2)
            sent["body"] = {"mode": "raw", "raw": text, "options": _JSON_BODY}
        elif "text" in scenario:
            sent["body"] = {
                "mode": "raw",
                "raw": scenario["text"],
                "options": {"raw": {"language": "text"}},
            }
        sent["header"] = [{"key": key, "value": value} for key, value in headers.items()]
        if "auth" in scenario:
            sent["auth"] = {"type": scenario["auth"]}
        return sent

    def _address(self, scenario: Json) -> tuple[str, str]:
        if "operation" in scenario:
            return self._addresses[scenario["operation"]]
        return scenario["method"], scenario["address"]

    def _tests(self, scenario: Json) -> str:
        lines = []
        status = scenario.get("status")
        if status is not None:
            lines.append(f"pm.test('{status}', () => pm.response.to.have.status({status}));")
        if "error" in scenario:
            expected = f"pm.expect(answer.error_type).to.equal('{scenario['error']}')"
            lines.append(f"pm.test('{scenario['error']}', () => {expected});")
        for word in scenario.get("names", ()):
            expected = f"pm.expect(answer.error).to.include('{word}')"
            lines.append(f"pm.test('it says what is wrong: {word}', () => {expected});")
        lines.append(scenario.get("tests", "").rstrip("\n"))
        # Checks come last: some name what the request's own tests have read.
        lines += [self._checks[check].rstrip("\n") for check in scenario.get("checks", ())]
        script = "\n".join(line for line in lines if line)
        return "\n".join([*_readings(script), script])


def _readings(script: str) -> list[str]:
    """Return the lines that read what the script names."""
    readings = []
    for name, line in (("answer", _READ_ANSWER), ("frames", _READ_FRAMES)):
        is_used = re.search(rf"\b{name}[.\[)]", script) is not None
        is_defined = re.search(rf"\bconst {name}\b", script) is not None
        if is_used and not is_defined:
            readings.append(line)
    return readings


def _url(path: str, query: Mapping[str, str]) -> Json:
    raw = "{{base_url}}" + path
    url: Json = {"raw": raw, "host": ["{{base_url}}"], "path": path.strip("/").split("/")}
    if query:
        url["raw"] += "?" + "&".join(f"{key}={value}" for key, value in query.items())
        url["query"] = [{"key": key, "value": value} for key, value in query.items()]
    return url


def _reply(request_id: str, reply: Json, request: Json) -> Json:
    body = (HERE / "replies" / reply["file"]).read_text("utf-8")
    is_json = reply["file"].endswith(".json")
    media = reply.get("media", "application/json") if is_json else reply["media"]
    return {
        "id": _id(f"{request_id}/{reply['name']}"),
        "name": reply["name"],
        "originalRequest": request,
        "status": HTTPStatus(reply["status"]).phrase.upper(),
        "code": reply["status"],
        "_postman_previewlanguage": "json" if is_json else "text",
        "header": [{"key": "Content-Type", "value": f"{media}; charset=utf-8"}],
        "cookie": [],
        "body": body,
    }


def _recorded(request_id: str, reply: Json, request: Json) -> Json:
    is_json = reply["media"].startswith("application/json")
    return {
        "id": _id(f"{request_id}/recorded"),
        "name": "As the demo answers, long lists cut",
        "originalRequest": request,
        "status": HTTPStatus(reply["status"]).phrase.upper(),
        "code": reply["status"],
        "_postman_previewlanguage": "json" if is_json else "text",
        "header": [{"key": "Content-Type", "value": reply["media"]}],
        "cookie": [],
        "body": reply["body"],
    }


def _script(listen: str, text: str) -> Json:
    lines = text.rstrip("\n").split("\n")
    return {"listen": listen, "script": {"type": "text/javascript", "exec": lines}}


def _id(name: str) -> str:
    return str(uuid.uuid5(_IDS, quote(name)))


if __name__ == "__main__":
    COLLECTION.write_text(json.dumps(collection(), ensure_ascii=False, indent=2) + "\n", "utf-8")
    sys.stdout.write(f"{COLLECTION.name}\n")
