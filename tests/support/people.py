"""Callers with keys of one application, who ask it, rate its answers and review what it learnt."""

import json
from pathlib import Path
from typing import Any

from tests.support.api_schemas import check_schema
from tests.support.asking import SYNC, Asking

FEEDBACK, EXAMPLES, LESSONS = (
    "/api/v0/feedback",
    "/api/v0/knowledge/examples",
    "/api/v0/knowledge/lessons",
)
IMPORT, EXPORT = "/api/v0/knowledge/import", "/api/v0/knowledge/export"
QUESTION = "top 3 service areas by revenue"


class People:
    """An application whose callers have keys: alice and bob, and rev and ron, who are reviewers."""

    def __init__(self, asking: Asking, keys: dict[str, str], audit_path: Path) -> None:
        self.asking = asking
        self.audit_path = audit_path
        self._keys = keys

    def call(
        self, who: str, path: str, body: Any = None, method: str = "", **more: Any
    ) -> tuple[int, dict[str, Any]]:
        """Status and data of a request; a GET unless there is a body."""
        headers = {"Authorization": f"Bearer {self._keys[who]}"}
        sent = {"json": body} if body is not None else {}
        method = method or ("POST" if sent else "GET")
        response = self.asking.client.open(
            path, method=method, headers=headers, buffered=True, **sent, **more
        )
        envelope = json.loads(response.get_data())
        assert envelope["code"] == response.status_code
        return response.status_code, envelope["data"]

    def ask(self, who: str, question: str = QUESTION, **fields: Any) -> dict[str, Any]:
        code, data = self.call(who, SYNC, {"question": question, **fields})
        assert code == 200, data
        return data

    def say(self, who: str, run_id: str, rating: str, **fields: Any) -> dict[str, Any]:
        code, data = self.call(who, FEEDBACK, {"run_id": run_id, "rating": rating, **fields})
        assert code == 200, data
        check_schema("Learnt", data)
        return data

    def examples(self, who: str, query: str = "") -> list[dict[str, Any]]:
        code, data = self.call(who, f"{EXAMPLES}?limit=100{query}")
        assert code == 200, data
        check_schema("ExampleList", data)
        return list(data["examples"])

    def exported(self, who: str) -> list[dict[str, Any]]:
        headers = {"Authorization": f"Bearer {self._keys[who]}"}
        response = self.asking.client.get(EXPORT, headers=headers, buffered=True)
        assert response.content_type == "application/x-ndjson; charset=utf-8"
        return [json.loads(line) for line in response.get_data().decode().splitlines()]

    def imported(self, who: str, lines: list[dict[str, Any]]) -> dict[str, int]:
        """How many of the lines became what."""
        body = "\n".join(map(json.dumps, lines))
        code, data = self.call(who, IMPORT, method="POST", data=body)
        assert code == 200, data
        counts: dict[str, int] = data["counts"]
        return counts

    def forget_all(self) -> None:
        for kind, path in (("example", EXAMPLES), ("lesson", LESSONS)):
            for item in self.call("rev", f"{path}?limit=100")[1][f"{kind}s"]:
                assert self.call("rev", f"{path}/{item[f'{kind}_id']}", method="DELETE")[0] == 200
