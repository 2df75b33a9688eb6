"""What is learnt of drafts over HTTP: from what, who sees it, and what it decides."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from api.access.key_file import KeyFile
from app_config import Settings
from common.actor import Actor
from tests.support.api_schemas import check_schema
from tests.support.asking import Asking, frames
from tests.support.databases import as_admin, execute
from tests.support.etl_requests import INTENT, SHOP
from tests.support.live import eventually
from tests.support.people import EXAMPLES, FEEDBACK, LESSONS, People
from tests.support.tool_bench import ToolBench

ASK = "/api/v0/etl/ask"
SENTENCE = "把订单表和用户表 JOIN，按月汇总销售额，写入销售汇总表"
SIMILAR = "把订单表和用户表 JOIN，按月汇总订单数，写入 x"
OTHER_WORDS = "将订单和用户关联，按月统计销售额，存入 another_table"
QUICK = {"mutants": False}
CHOSEN = {"date_column": "orders.paid_at"}
GROUPS = {
    "alice": ("staff",),
    "bob": ("staff",),
    "guest": ("guests",),
    "rev": ("reviewers",),
    "ron": ("reviewers",),
}
Draft = dict[str, Any]


class Makers(People):
    """People who have transformations drafted."""

    def drafted(self, who: str, question: str = SENTENCE, **options: Any) -> Draft:
        body = {"question": question, "options": {**QUICK, **options}}
        return self.sent(who, ASK, body)

    def built(self, who: str, **intent: Any) -> Draft:
        return self.sent(who, ASK, {"intent": {**INTENT, **intent}, "options": QUICK})

    def sent(self, who: str, path: str, body: Any) -> Draft:
        code, data = self.call(who, path, body)
        assert code == 200, data
        return data

    def answered(self, who: str, asked: Draft, answer: Any) -> Draft:
        """The next question or the answer, after this answer."""
        run = f"/api/v0/runs/{asked['run_id']}"
        given = {"interrupt_id": asked["interrupt_id"], "answer": answer}
        code, data = self.call(who, f"{run}/resume", given)
        assert code == 202, data
        headers = {"Authorization": f"Bearer {self._keys[who]}"}
        with self.asking.client.get(f"{run}/events", headers=headers, buffered=True) as events:
            last: Draft = list(frames(events.get_data().decode()))[-1]["data"]
        return last

    def rated(self, who: str, asked: Draft, rating: str, **more: Any) -> Draft:
        answer = self.answered(who, asked, {"rating": rating, **more})
        if answer["type"] == "completed":
            check_schema("CompletedEtlAnswer", answer)
        return answer

    def satisfied(self, who: str) -> dict[str, Any]:
        """The example of a draft that they are satisfied with."""
        judged = self.answered(who, self.drafted(who), CHOSEN)
        learned: dict[str, Any] = self.rated(who, judged, "satisfied")["learned"]
        assert learned["lesson"] is None
        example: dict[str, Any] = learned["example"]
        return example

    def decided(self, who: str, question: str = SENTENCE) -> list[str]:
        """What earlier drafts decide of the request, for them."""
        answer = self.drafted(who, question, interactive=False)
        assert answer["status"] in ("proven", "needs_input")
        return [
            assumption["text"]
            for assumption in answer["assumptions"]
            if assumption["decided_by"] == "example"
        ]

    def lessons(self, who: str) -> list[dict[str, Any]]:
        data = self.call(who, f"{LESSONS}?limit=100")[1]
        check_schema("LessonList", data)
        lessons: list[dict[str, Any]] = data["lessons"]
        return lessons


@pytest.fixture(scope="module")
def shop_url(make_database: Callable[[str], str]) -> str:
    return make_database(SHOP)


@pytest.fixture(scope="module")
def service(
    make_app_database: Callable[[], str],
    shop_url: str,
    scratch_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Makers]:
    folder = tmp_path_factory.mktemp("makers")
    keys = KeyFile(folder / "api_keys.json")
    texts = {name: keys.create(name, groups=groups)[0] for name, groups in GROUPS.items()}
    settings = Settings(
        database_url=shop_url,
        app_database_url=make_app_database(),
        scratch_database_url=scratch_url,
        data_dir=str(folder),
        reviewer_groups="reviewers",
        group_denied_objects="guests: public.orders.paid_at",
        catalog_ttl_s=0.5,
    )
    with Asking(settings) as asking:
        yield Makers(asking, texts, folder / "audit.jsonl")


@pytest.fixture
def makers(service: Makers) -> Makers:
    """The service, with nothing learnt."""
    service.forget_all()
    return service


def test_a_draft_that_its_user_is_satisfied_with_decides_for_them_and_once_reviewed_for_all(
    makers: Makers,
) -> None:
    example = makers.satisfied("alice")
    assert (example["kind"], example["trust"], example["source"]) == ("etl", "personal", "feedback")
    draft = example["etl"]
    assert (draft["target"], draft["answers"]) == ("销售汇总表", CHOSEN)
    assert [node["node"] for node in draft["code"]][:2] == ["ods_orders", "ods_users"]
    assert example["tables"] == ["public.orders", "public.users"]
    assert makers.examples("alice") == [example]
    assert makers.examples("bob") == []
    # The same request decides, whatever its words and its target are.
    for question in (SENTENCE, OTHER_WORDS):
        (text,) = makers.decided("alice", question)
        assert "orders.paid_at" in text
    assert makers.decided("alice", SIMILAR) == []
    assert makers.decided("bob") == []
    known = f"{EXAMPLES}/{example['example_id']}"
    assert makers.call("bob", f"{known}/approve", {})[0] == 403
    assert makers.call("alice", f"{known}/approve", {})[0] == 403
    code, reviewed = makers.call("rev", f"{known}/approve", {"trust": "personal"})
    assert (code, reviewed["example"]["trust"]) == (200, "reviewed")
    assert len(makers.decided("bob")) == 1
    # What a caller may not read does not exist, nor what others learnt of it.
    assert makers.decided("guest") == []
    assert makers.examples("guest") == []
    assert eventually(lambda: makers.examples("bob")[0]["uses"] > 0)
    assert makers.examples("bob")[0]["trust"] == "reviewed"
    assert makers.call("alice", known, method="DELETE")[0] == 403
    assert makers.call("rev", f"{known}/reject", {})[0] == 200
    assert makers.decided("bob") == makers.decided("alice") == []
    assert makers.call("rev", known, method="DELETE")[0] == 200
    assert makers.examples("alice") == []


def test_kept_drafts_are_assets_with_lineage_and_references(makers: Makers, tmp_path: Path) -> None:
    example = makers.satisfied("alice")

    def told(who: str, name: str, **arguments: Any) -> list[dict[str, Any]]:
        bench = ToolBench(makers.asking, tmp_path / "audit.jsonl", Actor(who, GROUPS[who]))
        result = bench.call(name, arguments)
        if result.error_type is not None:
            return []
        return [json.loads(line) for line in result.text.splitlines() if line.startswith("{")]

    def lineage(who: str) -> list[dict[str, Any]]:
        return told(who, "get_table_lineage", table="销售汇总表", direction="upstream")

    def references(who: str, **limits: Any) -> list[str]:
        found = told(who, "search_reference_sql", query="按月汇总销售额", **limits)
        return [one["summary"] for one in found]

    (asset,) = (
        one
        for one in told("alice", "search_assets", query="销售汇总表")
        if one["kind"] == "artefact"
    )
    assert (asset["name"], asset["layer"], asset["score"]) == ("销售汇总表", "DWS", 0.7)
    assert {(one["source"], one["origin"]) for one in lineage("alice")} == {
        ("public.orders", "artefact"),
        ("public.users", "artefact"),
    }
    paid = told(
        "alice", "get_table_lineage", table="orders", column="paid_at", direction="downstream"
    )
    assert [one["target"] for one in paid] == ["销售汇总表"]
    assert references("alice") == references("alice", target_tables=["销售汇总表"]) == [SENTENCE]
    assert references("alice", target_tables=["other"]) == []
    broken = makers.call("alice", "/api/v0/etl/impact?table=orders&column=paid_at")[1]["dependents"]
    assert ("artefact", "销售汇总表") in {(one["kind"], one["name"]) for one in broken}
    assert (lineage("bob"), references("bob")) == ([], [])
    approved = f"{EXAMPLES}/{example['example_id']}/approve"
    assert makers.call("rev", approved, {"trust": "personal"})[0] == 200
    assert len(lineage("bob")) == len(lineage("alice"))
    # What a draft reads may be closed to others.
    assert (lineage("guest"), references("guest")) == ([], [])


def test_questions_and_drafts_learn_apart(makers: Makers) -> None:
    makers.satisfied("alice")
    asked = makers.ask("alice", SENTENCE.rpartition("，")[0])
    assert asked.get("generation_method") != "verified_example"
    makers.say("alice", makers.ask("alice", "how many users are there?")["run_id"], "satisfied")
    assert [example["kind"] for example in makers.examples("alice")] == ["example", "etl"]
    done = makers.drafted("alice", interactive=False)
    said = makers.say("alice", done["run_id"], "unsatisfied", comment="too slow")
    assert (said["example"], said["lesson"]) == (None, None)
    assert "draft" in said["warnings"][0].lower() or "草稿" in said["warnings"][0]


FORBIDDEN = {"monthly_sales": "SELECT now() AS month, pg_sleep(9) AS sales FROM dwd_orders_users"}


def changed(source: str, condition: str = "true") -> dict[str, str]:
    return {
        "monthly_sales": "SELECT date_trunc('month', ordered_on)::date AS month, "
        f"sum(amount) AS sales FROM {source} WHERE {condition} GROUP BY 1"
    }


def test_corrected_sql_becomes_the_reference_once_it_passes(makers: Makers) -> None:
    judged = makers.built("alice")
    shown = judged["schema"]["properties"]["modified_sql"]["properties"]
    assert "GROUP BY" in shown["monthly_sales"]["default"]
    right = changed("dwd_orders_users", "amount < 1 OR amount >= 1 OR amount IS NULL /* Ada */")
    judged = makers.rated("alice", judged, "need_modification", modified_sql=right)
    assert judged["evidence"]["status"] == "passed"
    # What is refused leaves the draft as it was.
    judged = makers.rated("alice", judged, "need_modification", modified_sql=FORBIDDEN)
    assert "pg_sleep" in judged["prompt"]
    # SQL counts with the rating that asks for it alone.
    answer = makers.rated("alice", judged, "satisfied", modified_sql=changed("ods_orders"))
    example, lesson = answer["learned"]["example"], answer["learned"]["lesson"]
    assert (example["trust"], example["source"]) == ("personal", "correction")
    target = example["etl"]["code"][-1]
    assert target["node"] == "monthly_sales"
    assert "amount >= 1" in target["sql"]
    assert "Ada" not in str(example)
    assert lesson["failure_type"] == "logic_error"
    assert makers.lessons("alice") == [lesson]
    assert makers.lessons("bob") == []


def test_what_was_changed_too_often_or_is_forbidden_is_not_learnt(makers: Makers) -> None:
    judged = makers.built("alice")
    wrong = changed("dwd_orders_users", "ordered_on IS NOT NULL")
    for sql, said in ((FORBIDDEN, "pg_sleep"), (wrong, "not pass")):
        judged = makers.rated("alice", judged, "need_modification", modified_sql=sql)
        assert judged["kind"] == "feedback"
        assert said in judged["prompt"]
    answer = makers.rated("alice", judged, "need_modification", modified_sql=changed("ods_orders"))
    assert any("2" in warning for warning in answer["warnings"])
    assert answer["learned"]["example"] is None
    lesson = answer["learned"]["lesson"]
    # The tests that failed say what was wrong.
    assert lesson["failure_type"] == "logic_error"
    assert "monthly_sales" in lesson["root_cause"]
    assert makers.examples("alice") == []


def test_a_draft_that_fails_is_a_candidate_at_most(makers: Makers) -> None:
    wrong = changed("dwd_orders_users", "ordered_on IS NOT NULL")
    judged = makers.rated("alice", makers.built("alice"), "need_modification", modified_sql=wrong)
    learned = makers.rated("alice", judged, "satisfied")["learned"]
    assert learned["example"]["trust"] == "candidate"
    assert learned["lesson"]["failure_type"] == "logic_error"


@pytest.mark.parametrize(
    ("comment", "failure_type"),
    [("it is far too slow", "performance_error"), (None, "requirement_mismatch")],
)
def test_an_unsatisfied_user_leaves_a_lesson(
    makers: Makers, comment: str | None, failure_type: str
) -> None:
    answer = makers.rated("alice", makers.built("alice"), "unsatisfied", comment=comment)
    lesson = answer["learned"]["lesson"]
    assert (lesson["failure_type"], answer["learned"]["example"]) == (failure_type, None)
    code, data = makers.call("rev", f"{LESSONS}/{lesson['lesson_id']}/approve", {})
    assert (code, data["lesson"]["is_shared"]) == (200, True)
    assert [one["lesson_id"] for one in makers.lessons("bob")] == [lesson["lesson_id"]]
    assert makers.lessons("guest") == makers.lessons("bob")


def test_a_build_that_fails_leaves_a_lesson_by_its_sqlstate(makers: Makers) -> None:
    number = {"as": "city_number", "expression": "CAST(users.city AS integer)"}
    intent = {
        "summary": "numbers of cities",
        "data_sources": [{"table_name": "users"}],
        "operations": [{"order": 1, "action": "transform", "parameters": number}],
    }
    for _ in range(2):
        answer = makers.sent("alice", ASK, {"intent": intent, "options": QUICK})
        assert answer["status"] == "failed"
        lesson = answer["learned"]["lesson"]
        assert lesson["failure_type"] == "logic_error"
        assert "integer" in lesson["root_cause"]
        assert "北京" not in lesson["root_cause"]
    assert len(makers.lessons("alice")) == 1


def test_a_changed_schema_makes_a_draft_stale_with_a_reason(
    makers: Makers, shop_url: str, admin_url: str
) -> None:
    example = makers.satisfied("alice")
    admin = as_admin(shop_url, admin_url)

    def kept() -> dict[str, Any]:
        # A request like it looks the draft up; until the catalogue is read again, it may fail.
        makers.call("alice", ASK, {"question": SIMILAR, "options": {"interactive": False}})
        (found,) = makers.examples("alice")
        return found

    def stale(found: dict[str, Any]) -> dict[str, Any] | None:
        return found if found["state"] == "stale" and "exist" in found["stale_reason"] else None

    execute(admin, "ALTER TABLE users RENAME COLUMN id TO user_id")
    try:
        found = eventually(lambda: stale(kept()))
        assert "id" in found["stale_reason"]
    finally:
        execute(admin, "ALTER TABLE users RENAME COLUMN user_id TO id")
    assert eventually(lambda: kept()["state"] == "active")
    assert kept()["stale_reason"] is None
    assert kept()["example_id"] == example["example_id"]


@pytest.mark.slow
def test_drafts_are_exported_and_imported(makers: Makers) -> None:
    makers.satisfied("alice")
    makers.rated("alice", makers.built("alice"), "unsatisfied", comment="wrong total")
    lines = makers.exported("rev")
    assert [line["kind"] for line in lines] == ["etl", "lesson"]
    assert makers.imported("ron", lines)["added"] == 2
    assert makers.decided("bob") == []
    assert len(makers.decided("ron")) == 1
    broken = {**lines[0], "etl": {**lines[0]["etl"], "code": "SELECT 1"}}
    assert makers.imported("ron", [broken, {**lines[0], "etl": None}])["invalid"] == 2


def test_nothing_is_learnt_from_strangers_or_where_learning_is_off(
    shop_url: str, scratch_url: str
) -> None:
    settings = Settings(database_url=shop_url, scratch_database_url=scratch_url)
    for closed in (replace(settings, allow_anonymous=True), replace(settings, learning=False)):
        with Asking(closed) as asking:
            strangers = Strangers(asking)
            judged = strangers.call("", ASK, {"intent": INTENT, "options": QUICK})[1]
            answer = strangers.rated("", judged, "satisfied")
            assert answer["learned"] == {"example": None, "lesson": None}
            assert len(answer["warnings"]) == 1
            said = {"run_id": answer["run_id"], "rating": "skip"}
            assert strangers.call("", FEEDBACK, said)[0] == 200


class Strangers(Makers):
    """Callers without keys."""

    def __init__(self, asking: Asking) -> None:
        super().__init__(asking, {"": ""}, None)  # type: ignore[arg-type]
