"""`GET /api/v0/me`: who the caller is and what it may do; and that the same actor reaches the work
done for it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, jsonify
from flask.testing import FlaskClient

from agent import bootstrap
from agent.flows.ask.context import AskContext
from agent.question import Question
from agent.runs.pauses import GivenAnswer, Pause
from api.access.callers import acting_as
from api.access.key_file import KeyFile
from api.access.rights import GroupRights
from app_config import ConfigurationError, Settings
from common.actor import Actor
from common.runtime import run as wait_for
from common.text import Text
from common.values import PlanEstimate
from tests.support.asking import SYNC, Asking, frames
from tests.support.live import GAUGES
from tests.support.survey.survey_flow import SURVEY, SurveyFlow
from unified_api import create_app

ME, RUN = "/api/v0/me", "/api/v0/sql/run"
NOWHERE = "postgresql://nobody@127.0.0.1:9/none"
MakeApp = Callable[..., Flask]


@pytest.fixture
def make_app(tmp_path: Path) -> MakeApp:
    """An application without a database, in which "stewards" review and "admins" operate."""

    def make(**changes: Any) -> Flask:
        settings = Settings(
            data_dir=str(tmp_path), audit_log="off", database_url=NOWHERE, app_database_url=NOWHERE
        )
        given = {"reviewer_groups": "stewards, leads", "operator_groups": "admins", **changes}
        return create_app(replace(settings, **given))

    return make


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    """The file of the applications that `make_app` makes."""
    return KeyFile(tmp_path / "api_keys.json")


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def me(
    client: FlaskClient,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
    **environ: str,
) -> dict[str, Any]:
    response = client.get(ME, headers=headers, query_string=query, environ_overrides=environ)
    envelope = json.loads(response.get_data())
    assert (response.status_code, envelope["code"], envelope["success"]) == (200, 200, True), (
        envelope
    )
    assert response.headers["Cache-Control"] == "no-store"
    return dict(envelope["data"])


def rights(data: dict[str, Any]) -> tuple[bool, bool, bool]:
    return data["authenticated"], data["is_reviewer"], data["is_operator"]


def test_a_key_says_who_its_holder_is(make_app: MakeApp, keys: KeyFile) -> None:
    attributes = (("region", ("north", "south")),)
    text, key = keys.create("alice", groups=("sales", "stewards"), attributes=attributes)
    client = make_app().test_client()
    alice = {
        "user_id": "alice",
        "groups": ["sales", "stewards"],
        "attributes": {"region": ["north", "south"]},
        "acts_for_others": False,
        "authenticated": True,
        "has_session": False,
        "is_reviewer": True,
        "is_operator": False,
    }
    assert me(client, bearer(text)) == alice
    assert me(client, {"X-API-Key": text}) == alice
    assert (
        me(client, bearer(text), {"user_id": "bob"}) == alice
    )  # a key that may not act for others keeps its own user
    assert client.get(ME).status_code == 401
    keys.revoke(key.key_id)
    refused = client.get(ME, headers=bearer(text))
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert json.loads(refused.get_data())["data"]["error_type"] == "unauthorized"


@pytest.mark.parametrize(
    ("groups", "is_reviewer", "is_operator"),
    [
        ((), False, False),
        (("sales",), False, False),
        (("leads",), True, False),
        (("admins",), False, True),
        (("sales", "admins", "stewards"), True, True),
        (("Admins", "steward", "stewards2"), False, False),
    ],
    ids=str,
)
def test_rights_are_groups_named_in_the_settings(
    make_app: MakeApp, keys: KeyFile, groups: tuple[str, ...], is_reviewer: bool, is_operator: bool
) -> None:
    headers = bearer(keys.create("alice", groups=groups)[0])
    assert rights(me(make_app().test_client(), headers)) == (True, is_reviewer, is_operator)
    # Where no groups are named, no key has the right.
    unnamed = make_app(reviewer_groups="", operator_groups="").test_client()
    assert rights(me(unnamed, headers)) == (True, False, False)


def test_who_is_acted_for_has_the_groups_of_the_key_and_acts_for_nobody(
    make_app: MakeApp, keys: KeyFile
) -> None:
    headers = bearer(keys.create("backend", groups=("sales", "leads"), acts_for_others=True)[0])
    client = make_app().test_client()
    backend = me(client, headers)
    assert (backend["user_id"], backend["acts_for_others"]) == ("backend", True)
    bob = me(client, headers, {"user_id": "bob"})
    assert bob == {**backend, "user_id": "bob", "acts_for_others": False}
    assert rights(bob) == (True, True, False)


# ------------------------------------------------------------------------------
# without keys


def test_without_keys_this_machine_is_the_operator_s(make_app: MakeApp) -> None:
    client = make_app().test_client()
    anonymous: dict[str, Any] = {
        "user_id": None,
        "groups": [],
        "attributes": {},
        "acts_for_others": False,
        "authenticated": False,
        "has_session": False,
        "is_reviewer": True,
        "is_operator": True,
    }
    assert me(client) == anonymous
    assert me(client, {"Authorization": "Bearer citu_key_of_another_service"}) == anonymous
    assert me(client, query={"user_id": "bob"}) == {**anonymous, "user_id": "bob"}
    assert me(client, {"Sec-Fetch-Site": "same-origin"}) == anonymous  # the service's own page
    assert client.get(ME, environ_overrides={"REMOTE_ADDR": "10.0.0.7"}).status_code == 403


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.7"])
def test_where_strangers_may_ask_nobody_without_a_key_has_rights(
    make_app: MakeApp, address: str
) -> None:
    client = make_app(allow_anonymous=True).test_client()
    assert rights(me(client, REMOTE_ADDR=address)) == (False, False, False)


@pytest.mark.parametrize(
    "headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://app.example.com"}], ids=str
)
def test_a_page_of_another_site_has_no_rights_without_a_key(
    make_app: MakeApp, keys: KeyFile, headers: dict[str, str]
) -> None:
    headers = {"Origin": "https://app.example.com", **headers}
    client = make_app(cors_origins="https://app.example.com").test_client()
    assert rights(me(client, headers)) == (False, False, False)
    text, _key = keys.create("alice", groups=("admins",))
    assert rights(me(client, headers | bearer(text))) == (True, False, True)


def test_an_open_address_gives_no_rights(make_app: MakeApp) -> None:
    app = make_app()
    granted = GroupRights({"stewards"}, {"admins"})
    app.view_functions["health.health"] = lambda: jsonify(
        granted.is_reviewer(acting_as(None)), granted.is_operator(acting_as(None))
    )
    assert app.test_client().get("/health").json == [False, False]


# ------------------------------------------------------------------------------
# how it is asked


@pytest.mark.parametrize(("lang", "message"), [("zh", "处理完成"), ("en", "Done")])
def test_the_message_is_in_the_caller_s_language(
    make_app: MakeApp, lang: str, message: str
) -> None:
    client = make_app().test_client()
    for given in ({"query_string": {"lang": lang}}, {"headers": {"Accept-Language": lang}}):
        assert json.loads(client.get(ME, **given).get_data())["message"] == message


@pytest.mark.parametrize(
    ("field", "value"), [("user_id", ""), ("user_id", "x" * 257), ("lang", "fr")]
)
def test_what_can_not_be_asked_is_refused(make_app: MakeApp, field: str, value: str) -> None:
    response = make_app().test_client().get(ME, query_string={field: value})
    assert (response.status_code, json.loads(response.get_data())["data"]["field"]) == (400, field)


@pytest.mark.parametrize("name", ["REVIEWER_GROUPS", "OPERATOR_GROUPS"])
@pytest.mark.parametrize("value", ["two words", "a,,b", "x" * 65, "a;b"])
def test_groups_that_no_key_can_have(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Settings.from_env({name: value})
    assert Settings.from_env({name: "sales, 运营:a.b-c_d"})


# ------------------------------------------------------------------------------------------- how
# far the actor travels


def test_the_actor_reaches_the_context_and_the_audit_log(
    tmp_path: Path, demo_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Actor] = []
    validate = AskContext.validate

    async def watched(self: AskContext, sql: str) -> PlanEstimate | None:
        seen.append(self.actor)
        return await validate(self, sql)

    monkeypatch.setattr(AskContext, "validate", watched)
    keys, audit = KeyFile(tmp_path / "api_keys.json"), tmp_path / "audit.jsonl"
    question = {"question": "店铺有多少家", "routing_mode": "database_direct"}
    with Asking(
        Settings(data_dir=str(tmp_path), database_url=demo_url, audit_log=str(audit))
    ) as asking:

        def ask(path: str, body: dict[str, Any], headers: dict[str, str]) -> None:
            assert asking.client.post(path, json=body, headers=headers).status_code == 200

        ask(SYNC, question, {})
        alice = bearer(keys.create("alice", groups=("sales", "ops"))[0])
        backend = bearer(keys.create("backend", groups=("apps",), acts_for_others=True)[0])
        ask(SYNC, question, alice)
        ask(SYNC, {**question, "user_id": "bob"}, backend)
        ask(RUN, {"sql": "SELECT 1", "user_id": "bob"}, alice)
        ask(RUN, {"sql": "SELECT 1", "user_id": "bob"}, backend)
        ask(RUN, {"sql": "SELECT 1"}, backend)
    lines = [json.loads(line) for line in audit.read_text("utf-8").splitlines()]
    assert [(line["source"], line["user_id"], line["groups"]) for line in lines] == [
        ("ask", "anonymous", []),
        ("ask", "alice", ["sales", "ops"]),
        ("ask", "bob", ["apps"]),
        ("sql_run", "alice", ["sales", "ops"]),
        ("sql_run", "bob", ["apps"]),
        ("sql_run", "backend", ["apps"]),
    ]
    alice_herself, bob = Actor("alice", ("sales", "ops")), Actor("bob", ("apps",))
    service = Actor("backend", ("apps",), acts_for_others=True)
    assert seen == [Actor(), alice_herself, bob, alice_herself, bob, service]


@pytest.mark.parametrize("dies", [False, True], ids=["the worker lives", "the worker dies"])
def test_a_run_that_waited_goes_on_with_the_rights_of_who_answers(
    tmp_path: Path, make_database: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    monkeypatch.setattr(bootstrap, "FLOWS", [*bootstrap.FLOWS, SurveyFlow])
    keys, audit = KeyFile(tmp_path / "api_keys.json"), tmp_path / "audit.jsonl"
    lost, key = keys.create("alice", groups=("sales",))
    settings = Settings(
        data_dir=str(tmp_path), database_url=make_database(GAUGES), audit_log=str(audit)
    )
    # A lease that a busy machine renews in time; who waits for it to run out waits as long.
    with Asking(settings, run_lease_s=2.5 if dies else 60.0) as asking:
        asked = asking.client.post(
            SYNC, json={"question": SURVEY, "agent": "survey"}, headers=bearer(lost)
        )
        first = json.loads(asked.get_data())["data"]
        keys.revoke(key.key_id)
        path, run_id = f"/api/v0/runs/{first['run_id']}", first["run_id"]
        headers = bearer(keys.create("alice", groups=("ops",))[0])

        def resume(question: dict[str, Any], answer: Any) -> dict[str, Any]:
            """The last event after the answer."""
            body = {"interrupt_id": question["interrupt_id"], "answer": answer}
            assert (
                asking.client.post(f"{path}/resume", json=body, headers=headers).status_code == 202
            )
            return last_event()

        def accept_and_die(question: dict[str, Any], answer: Any) -> dict[str, Any]:
            """The same, where the worker dies once the store has the answer, and another takes the
            run over.
            """
            given = GivenAnswer(answer, Actor("alice", ("ops",))).to_json()
            accepted = asking.services.store.runs.resume(
                "alice", run_id, question["interrupt_id"], given, "dead"
            )
            assert wait_for(accepted, timeout_s=10) == "resumed"
            return last_event()

        def last_event() -> dict[str, Any]:
            with asking.client.get(f"{path}/events", headers=headers) as response:
                return dict(list(frames(response.get_data().decode()))[-1]["data"])

        second = resume(first, "n")
        assert (accept_and_die if dies else resume)(second, 2)["response"] == "1, 2"
    (line,) = [json.loads(line) for line in audit.read_text("utf-8").splitlines()]
    assert (line["user_id"], line["groups"]) == ("alice", ["ops"])
    assert line["sql"] == "SELECT n FROM gauge ORDER BY 1 LIMIT 2"


def test_the_store_gives_back_what_it_keeps_of_an_actor() -> None:
    given = GivenAnswer({"column": ["n"]}, Actor("张三", ("sales", "ops"), acts_for_others=True))
    assert GivenAnswer.from_json(json.loads(json.dumps(given.to_json()))) == given
    question = Question("q", actor=Actor("张三", ("lost",)), notices=(Text("一", "one"),))
    pause = Pause(question, "interrupt", 1, "mark")
    kept = json.loads(json.dumps(pause.to_json()))
    assert Pause.from_json(kept, given.actor) == replace(
        pause, question=replace(question, actor=given.actor)
    )
