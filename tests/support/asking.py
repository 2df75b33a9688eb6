"""Asks a Citu in this process over WSGI, on the demo database, with a scripted model or none."""

import json
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from werkzeug.test import Client, TestResponse

from agent.bootstrap import bootstrap
from app_config import Settings
from common.runtime import run
from tests.support.openai_replies import Reply
from tests.support.openai_server import OpenAiServer
from unified_api import create_app

SYNC = "/api/v0/ask_agent"
STREAM = "/api/v0/ask_agent_stream"
# What differs from one run of the same question to the next; follow-ups are left out where they are
# not ready in time.
VOLATILE = {"conversation_id", "run_id", "request_id", "timestamp", "timings_ms", "follow_ups"}


_STORE_TIMEOUT_S = 20.0  # on a busy machine the two seconds of the product may be too few
# No program: drafts are built by plain SQL, because dbt takes seconds of the processor for each.
_NO_DBT = "none"


class Asking:
    """One application. `sync` and `stream` ask the same question, each answered by the same
    `replies`.

    Writes no audit log unless a file is given for it; conversations and runs are kept in the tests'
    database unless another is given. Drafts are built without dbt unless `changes` name `etl_dbt`.
    """

    def __init__(
        self, settings: Settings, model: OpenAiServer | None = None, **changes: Any
    ) -> None:
        if model is not None:
            scripted = {
                "openai_api_key": "test",
                "openai_base_url": model.url,
                "openai_model": "scripted",
            }
            changes = {**scripted, **changes}
        self._model = model
        defaults = {
            "audit_log": settings.audit_log or "off",
            "app_database_url": settings.app_database_url or os.environ["APP_DATABASE_URL"],
            "etl_dbt": _NO_DBT,
            "store_timeout_s": max(settings.store_timeout_s, _STORE_TIMEOUT_S),
        }
        settings = replace(settings, **{**defaults, **changes})
        self.services = bootstrap(settings)
        self.client = Client(create_app(settings, self.services))

    def __enter__(self) -> "Asking":
        return self

    def __exit__(self, *_exc_info: object) -> None:
        run(_awaited(self.services.aclose), timeout_s=60)

    def sync(self, body: dict[str, Any], *replies: Reply) -> tuple[int, dict[str, Any]]:
        """Return status and envelope."""
        with self._post(SYNC, body, replies) as response:  # closing the response frees its slot
            return response.status_code, json.loads(response.get_data())

    def stream(self, body: dict[str, Any], *replies: Reply) -> list[dict[str, Any]]:
        """Return the envelopes of all frames, each with its event id as `id`."""
        with self._post(STREAM, body, replies) as response:
            assert response.status_code == 200, response.get_data()
            assert response.content_type == "text/event-stream; charset=utf-8"
            return list(frames(response.get_data().decode()))

    def _post(self, path: str, body: dict[str, Any], replies: tuple[Reply, ...]) -> TestResponse:
        if self._model is not None:
            if replies:
                self._model.forget_replies()
            self._model.replies(*replies)
        return self.client.post(path, json=body)


@contextmanager
def shared_askings(settings: Settings) -> Iterator[Callable[..., Asking]]:
    """Give applications by model and changes to `settings`; make each at its first use and keep
    it.
    """
    with ExitStack() as stack:
        made: dict[str, Asking] = {}

        def asking(model: OpenAiServer | None, **changes: Any) -> Asking:
            key = repr((model, sorted(changes.items())))
            if key not in made:
                made[key] = stack.enter_context(Asking(settings, model, **changes))
            return made[key]

        yield asking


async def _awaited(close: Callable[[], Awaitable[None]]) -> None:
    await close()


def frames(text: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a complete stream."""
    for block in text.split("\n\n"):
        fields = [
            line.partition(": ") for line in block.split("\n") if line and not line.startswith(":")
        ]
        found = {name: value for name, _, value in fields}
        if "data" in found:
            yield {"id": found["id"], **json.loads(found["data"])}


def stable(envelope: dict[str, Any]) -> dict[str, Any]:
    """Return the part of an envelope that two runs of the same question must share."""
    data = {
        key: value
        for key, value in envelope["data"].items()
        if key not in VOLATILE and key != "type"
    }
    return {key: value for key, value in envelope.items() if key != "id"} | {"data": data}
