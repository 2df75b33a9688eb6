"""What users say of answers, over HTTP: what is learnt from it, who sees it, and what reviewers
make of it.
"""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.access.key_file import KeyFile
from app_config import Settings
from common.runtime import run
from tests.support.api_schemas import check_schema
from tests.support.asking import SYNC, Asking
from tests.support.effort import tries
from tests.support.learnt import example
from tests.support.people import EXAMPLES, FEEDBACK, IMPORT, LESSONS, QUESTION, People

RIGHT = "SELECT count(*) FROM shop"
DENIED = "SELECT count(*) FROM daily_traffic"


@pytest.fixture(scope="module")
def service(
    demo_url: str, make_app_database: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[People]:
    folder = tmp_path_factory.mktemp("people")
    keys = KeyFile(folder / "api_keys.json")
    groups = {
        "alice": ("staff",),
        "bob": ("staff",),
        "rev": ("reviewers",),
        "ron": ("reviewers", "staff"),
    }
    texts = {name: keys.create(name, groups=groups[name])[0] for name in groups}
    settings = Settings(
        database_url=demo_url, data_dir=str(folder), app_database_url=make_app_database()
    )
    audit_path = folder / "audit.jsonl"
    with Asking(
        settings, audit_log=str(audit_path), reviewer_groups="reviewers", statement_timeout_s=5
    ) as asking:
        yield People(asking, texts, audit_path)


@pytest.fixture
def people(service: People) -> People:
    """The service, with nothing learnt."""
    service.forget_all()
    return service


# ------------------------------------------------------------------------------
# feedback


def test_a_satisfied_user_has_a_personal_example(people: People) -> None:
    answer = people.ask("alice")
    data = people.say("alice", answer["run_id"], "satisfied")
    example = data["example"]
    assert (example["question"], example["sql"]) == (QUESTION, answer["sql"])
    assert (example["trust"], example["author"], example["source"]) == (
        "personal",
        "alice",
        "feedback",
    )
    assert example["state"] == "active"
    assert "public.service_area" in example["tables"]
    assert (data["lesson"], data["query_result"], data["warnings"]) == (None, None, [])
    assert people.examples("alice") == [example]
    assert people.examples("bob") == []
    assert people.examples("rev") == [example]


def test_corrected_sql_is_proven_run_and_learnt(people: People) -> None:
    answer = people.ask("alice")
    data = people.say(
        "alice", answer["run_id"], "need_modification", modified_sql=RIGHT, comment="only\nshops"
    )
    assert data["query_result"]["row_count"] == 1
    assert data["plan"]["total_cost"] > 0
    assert (data["example"]["sql"], data["example"]["source"]) == (RIGHT, "correction")
    assert data["lesson"]["sql"] == answer["sql"]
    assert data["lesson"]["failure_type"] == "semantic_error"
    assert 'The user says: "only shops"' in data["lesson"]["root_cause"]
    assert "shop" in data["lesson"]["avoidance_hint"]
    line = json.loads(people.audit_path.read_text().splitlines()[-1])
    assert (line["source"], line["sql"], line["user_id"], line["question"]) == (
        "feedback",
        RIGHT,
        "alice",
        QUESTION,
    )


@pytest.mark.parametrize(
    ("sql", "code", "error_type"),
    [
        ("DELETE FROM shop", 403, "forbidden_keywords"),
        ("SELECT 1; SELECT 2", 403, "forbidden_keywords"),
        ("SELECT pg_read_file('/etc/passwd')", 403, "forbidden_object"),
        ("SELECT nothing FROM shop", 422, "syntax_error"),
        ("SELECT 1 / (count(*) - count(*)) FROM shop", 422, "syntax_error"),
    ],
)
def test_refused_sql_teaches_nothing(people: People, sql: str, code: int, error_type: str) -> None:
    answer = people.ask("alice")
    people.say("alice", answer["run_id"], "satisfied")
    before = people.examples("alice")
    body = {"run_id": answer["run_id"], "rating": "need_modification", "modified_sql": sql}
    found, data = people.call("alice", FEEDBACK, body)
    assert (found, data["error_type"]) == (code, error_type)
    assert people.examples("alice") == before


def test_an_unsatisfied_user_leaves_a_lesson_and_takes_the_example_back(people: People) -> None:
    answer = people.ask("alice")
    people.say("alice", answer["run_id"], "satisfied")
    data = people.say("alice", answer["run_id"], "unsatisfied", comment="counted twice")
    assert data["example"] is None
    assert data["lesson"]["failure_type"] == "logic_error"
    assert people.examples("alice") == []
    code, listed = people.call("alice", LESSONS)
    assert (code, listed["lessons"]) == (200, [data["lesson"]])
    check_schema("LessonList", listed)
    assert people.call("bob", LESSONS)[1]["lessons"] == []
    data = people.say("alice", answer["run_id"], "skip")
    assert (data["example"], data["lesson"]) == (None, None)
    assert people.call("alice", LESSONS)[1]["lessons"] == []


def test_an_answer_without_sql_keeps_the_feedback_alone(people: People) -> None:
    answer = people.ask("alice", "hello")
    data = people.say("alice", answer["run_id"], "satisfied")
    assert (data["example"], data["lesson"], data["warnings"]) == (None, None, [])
    kept = run(people.asking.services.store.learned.feedback("alice", answer["run_id"]), 10)
    assert kept is not None
    assert kept.rating == "satisfied"


def test_a_follow_up_makes_no_example(people: People) -> None:
    first = people.ask("alice")
    follow_up = people.ask("alice", "and the top 5?", conversation_id=first["conversation_id"])
    data = people.say("alice", follow_up["run_id"], "satisfied")
    assert data["example"] is None
    assert "not complete without the conversation" in data["warnings"][0]
    alone = people.ask(
        "alice", "how many shops are there?", conversation_id=first["conversation_id"]
    )
    assert people.say("alice", alone["run_id"], "satisfied")["example"] is not None


def test_an_answer_of_another_user_does_not_exist(people: People) -> None:
    answer = people.ask("alice")
    code, data = people.call("bob", FEEDBACK, {"run_id": answer["run_id"], "rating": "satisfied"})
    assert (code, data["error_type"]) == (404, "not_found")
    body = {"run_id": answer["run_id"], "rating": "satisfied", "user_id": "alice"}
    assert people.call("bob", FEEDBACK, body)[0] == 404


def test_an_answer_is_found_in_its_conversation_when_its_run_is_gone(
    people: People, demo_url: str
) -> None:
    settings = Settings(database_url=demo_url, run_ttl_s=0.05)
    with Asking(settings) as asking:
        code, envelope = asking.sync({"question": QUESTION, "user_id": "late"})
        assert code == 200
        answer, said = envelope["data"], {"rating": "satisfied", "user_id": "late"}
        run_id = answer["run_id"]
        while asking.client.get(f"/api/v0/runs/{run_id}?user_id=late").status_code != 404:
            threading.Event().wait(0.02)
        for more in ({}, {"conversation_id": answer["conversation_id"]}):
            response = asking.client.post(FEEDBACK, json={"run_id": run_id, **said, **more})
            assert json.loads(response.get_data())["data"]["example"]["sql"] == answer["sql"]
        gone = asking.client.post(FEEDBACK, json={"run_id": "run_none", **said})
        assert gone.status_code == 404
        assert "conversation_id" in json.loads(gone.get_data())["data"]["error"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"rating": "satisfied"}, "run_id"),
        ({"run_id": "r"}, "rating"),
        ({"run_id": "r", "rating": "great"}, "rating"),
        ({"run_id": "r", "rating": 5}, "rating"),
        ({"run_id": "r r", "rating": "skip"}, "run_id"),
        ({"run_id": "r", "rating": "need_modification"}, "modified_sql"),
        ({"run_id": "r", "rating": "need_modification", "modified_sql": " "}, "modified_sql"),
        ({"run_id": "r", "rating": "satisfied", "modified_sql": "SELECT 1"}, "modified_sql"),
        ({"run_id": "r", "rating": "skip", "comment": "x" * 1001}, "comment"),
        ({"run_id": "r", "rating": "skip", "comment": "\ud800"}, "comment"),
    ],
)
def test_wrong_feedback_is_named(people: People, body: dict[str, Any], field: str) -> None:
    code, data = people.call("alice", FEEDBACK, body)
    assert (code, data["field"]) == (400, field)


# ------------------------------------------------------------------------------
# reviews


def _example(people: People, who: str = "alice", question: str = QUESTION) -> str:
    return str(
        people.say(who, people.ask(who, question)["run_id"], "satisfied")["example"]["example_id"]
    )


def test_only_reviewers_review_and_never_their_own(people: People) -> None:
    known = _example(people)
    for verdict in ("approve", "certify", "reject"):
        code, data = people.call("bob", f"{EXAMPLES}/{known}/{verdict}", {})
        assert (code, data["error_type"]) == (403, "forbidden")
        assert people.call("alice", f"{EXAMPLES}/{known}/{verdict}", {})[0] == 403
    own = _example(people, "rev")
    code, data = people.call("rev", f"{EXAMPLES}/{own}/approve", {})
    assert (code, data["error_type"]) == (403, "forbidden")
    assert people.call("ron", f"{EXAMPLES}/{own}/approve", method="POST")[0] == 200
    assert people.call("rev", f"{EXAMPLES}/ex_none/approve", {})[0] == 404
    assert people.call("rev", f"{LESSONS}/{known}/approve", {})[0] == 404


def test_an_approved_example_is_everybodys(people: People) -> None:
    known = _example(people)
    code, data = people.call("rev", f"{EXAMPLES}/{known}/approve", {"trust": "personal"})
    assert (code, data["example"]["trust"], data["example"]["reviewer"]) == (200, "reviewed", "rev")
    assert [each["example_id"] for each in people.examples("bob")] == [known]
    assert people.examples("rev", "&trust=candidate,personal&state=active") == []
    code, data = people.call("ron", f"{EXAMPLES}/{known}/reject", {"trust": "personal"})
    assert (code, data["error_type"]) == (409, "conflict")
    assert "reviewed" in data["error"]
    assert (
        people.call("ron", f"{EXAMPLES}/{known}/certify", {})[1]["example"]["trust"] == "certified"
    )
    code, data = people.call("alice", f"{EXAMPLES}/{known}", method="DELETE")
    assert (code, data["error_type"]) == (403, "forbidden")
    assert people.call("ron", f"{EXAMPLES}/{known}/reject", {})[1]["example"]["state"] == "rejected"
    assert people.examples("bob") == []
    assert people.call("bob", f"{EXAMPLES}/{known}", method="DELETE")[0] == 404
    assert people.call("alice", f"{EXAMPLES}/{known}", method="DELETE")[0] == 200


def test_an_approved_lesson_is_everybodys(people: People) -> None:
    answer = people.ask("alice")
    known = people.say("alice", answer["run_id"], "unsatisfied")["lesson"]["lesson_id"]
    assert people.call("rev", f"{LESSONS}/{known}/approve", {})[1]["lesson"]["is_shared"]
    assert [each["lesson_id"] for each in people.call("bob", LESSONS)[1]["lessons"]] == [known]
    people.say("alice", answer["run_id"], "satisfied")
    assert len(people.call("bob", LESSONS)[1]["lessons"]) == 1
    assert people.call("rev", f"{LESSONS}/{known}/reject", {})[0] == 200
    assert people.call("bob", LESSONS)[1]["lessons"] == []


def test_lists_have_pages_and_filters(people: People) -> None:
    for question in ("how many shops are there?", "how many service areas are there?", QUESTION):
        _example(people, "alice", question)
    seen: list[str] = []
    query = ""
    while True:
        code, data = people.call("alice", f"{EXAMPLES}?limit=2{query}")
        assert code == 200
        seen += [each["example_id"] for each in data["examples"]]
        if data["next_cursor"] is None:
            break
        query = f"&cursor={data['next_cursor']}"
    assert len(seen) == len(set(seen)) == 3
    assert people.call("alice", f"{EXAMPLES}?cursor=x")[1]["field"] == "cursor"
    assert people.call("alice", f"{EXAMPLES}?trust=great")[1]["field"] == "trust"
    assert people.call("alice", f"{EXAMPLES}?state=active,odd")[1]["field"] == "state"


# ------------------------------------------------------------------------------
# imports and exports


def test_an_import_says_what_became_of_each_line(people: People) -> None:
    lines = [
        json.dumps({"question": "how many shops?", "sql": RIGHT}),
        "",
        json.dumps({"question": "drop it", "sql": "DROP TABLE shop"}),
        json.dumps({"question": "typo", "sql": "SELECT categry FROM shop"}),
        "{",
        json.dumps({"question": "", "sql": RIGHT}),
        json.dumps({"question": "x", "sql": 5}),
        json.dumps(
            {"kind": "lesson", "question": "q", "failure_type": "logic_error", "root_cause": "a"}
        ),
        json.dumps(
            {
                "kind": "lesson",
                "question": "q",
                "failure_type": "logic_error",
                "root_cause": "a",
                "avoidance_hint": "b",
            }
        ),
    ]
    body = "\n".join(lines).encode()
    code, data = people.call("rev", IMPORT, method="POST", data=body)
    assert code == 200
    check_schema("Imported", data)
    statuses = [(line["line"], line["status"], line["error_type"]) for line in data["lines"]]
    assert statuses == [
        (1, "added", None),
        (3, "refused", "forbidden_keywords"),
        (4, "refused", "syntax_error"),
        (5, "invalid", "invalid_request"),
        (6, "invalid", "invalid_request"),
        (7, "invalid", "invalid_request"),
        (8, "invalid", "invalid_request"),
        (9, "added", None),
    ]
    assert "category" in data["lines"][2]["error"]
    assert data["counts"] == {"added": 2, "known": 0, "full": 0, "refused": 2, "invalid": 4}
    [example] = people.examples("rev")
    assert (example["trust"], example["author"], example["source"]) == ("personal", "rev", "load")
    assert people.examples("bob") == []
    assert people.call("rev", IMPORT, method="POST", data=body)[1]["counts"]["known"] == 2
    assert people.call("alice", IMPORT, method="POST", data=body)[0] == 403
    assert people.call("rev", IMPORT, method="POST", data=b"\xff")[0] == 400


def test_equal_lines_of_an_import_are_added_once(people: People) -> None:
    line = json.dumps({"question": "how many shops are open?", "sql": RIGHT})
    spaced = json.dumps({"question": " how many shops are open? ", "sql": RIGHT})
    code, data = people.call(
        "rev", IMPORT, method="POST", data="\n".join([line, line, spaced]).encode()
    )
    assert code == 200
    assert [each["status"] for each in data["lines"]] == ["added", "known", "known"]
    assert len({each["id"] for each in data["lines"]}) == 1
    assert data["counts"]["added"] == 1


@pytest.mark.parametrize("body", [b"", b"\n \r\n", b"\xef\xbb\xbf"])
def test_an_import_of_nothing_is_refused(people: People, body: bytes) -> None:
    code, data = people.call("rev", IMPORT, method="POST", data=body)
    assert (code, data["error_type"]) == (400, "invalid_request")
    assert "one JSON object per line" in data["error"]


def test_what_is_exported_can_be_imported(people: People) -> None:
    known = _example(people)
    people.say("alice", people.ask("alice", "how many shops are there?")["run_id"], "unsatisfied")
    people.call("rev", f"{EXAMPLES}/{known}/approve", {})

    lines = people.exported("rev")
    assert [line["kind"] for line in lines] == ["example", "lesson"]
    assert people.exported("bob") == lines[:1]
    assert people.imported("ron", lines)["added"] == 2
    assert {each["trust"] for each in people.examples("ron", "&trust=personal")} == {"personal"}


# ------------------------------------------------------------------------------
# poisoning

RATINGS = st.sampled_from(["satisfied", "unsatisfied", "need_modification", "skip"])
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), RATINGS, st.integers(0, 2)),
        st.tuples(st.just("ask"), st.sampled_from([QUESTION, "how many shops are there?"])),
        st.tuples(st.just("import"), st.sampled_from(["personal", "certified"])),
        st.tuples(st.sampled_from(["approve", "certify", "reject", "delete"]), st.integers(0, 3)),
    ),
    max_size=8,
)


@settings(max_examples=tries(8))
@given(calls=CALLS)
def test_no_calls_of_one_caller_change_what_another_is_given(
    service: People, calls: list[Any]
) -> None:
    """alice is no reviewer; whatever she calls, bob's SQL, his examples and what is shared stay as
    they are.
    """
    people = service
    people.forget_all()
    theirs = [
        _example(people, "bob"),
        _example(people, "alice", "how many service areas are there?"),
    ]
    people.call("rev", f"{EXAMPLES}/{theirs[1]}/approve", {})
    runs = [people.ask("bob")["run_id"], people.ask("alice")["run_id"], "run_none"]
    learned = people.asking.services.store.learned

    def seen() -> tuple[Any, ...]:
        visible = run(learned.visible("default", "bob"), 10)
        items = tuple(
            (each.example_id, each.question, each.sql, each.trust) for each in visible.examples
        )
        answer = people.ask("bob")
        return items, visible.lessons, answer["sql"], answer["classification_info"]["method"]

    before = seen()
    for kind, *values in calls:
        if kind == "say":
            corrected = {"modified_sql": RIGHT} if values[0] == "need_modification" else {}
            for user in ({}, {"user_id": "bob"}):
                people.call(
                    "alice",
                    FEEDBACK,
                    {"run_id": runs[values[1]], "rating": values[0], **corrected, **user},
                )
        elif kind == "ask":
            runs[1] = people.ask("alice", values[0])["run_id"]
        elif kind == "import":
            line = json.dumps(
                {"question": QUESTION, "sql": RIGHT, "trust": values[0], "author": "bob"}
            )
            assert people.call("alice", f"{IMPORT}?user_id=bob", method="POST", data=line)[0] == 403
        else:
            mine = [each["example_id"] for each in people.examples("alice")]
            known = [*theirs, *mine, "ex_none"][values[0] % (len(mine) + 3)]
            path = f"{EXAMPLES}/{known}" + ("" if kind == "delete" else f"/{kind}")
            people.call(
                "alice",
                path,
                {} if kind != "delete" else None,
                "DELETE" if kind == "delete" else "POST",
            )
    assert seen() == before


# ------------------------------------------------------------------------------
# who is learnt from


def _feedback(asking: Asking, **environ: Any) -> dict[str, Any]:
    answer = json.loads(
        asking.client.post(
            SYNC, json={"question": QUESTION, "user_id": "mallory"}, **environ
        ).get_data()
    )
    said = {"run_id": answer["data"]["run_id"], "rating": "satisfied", "user_id": "mallory"}
    return dict(json.loads(asking.client.post(FEEDBACK, json=said, **environ).get_data())["data"])


def test_nothing_is_learnt_from_strangers_who_may_name_anybody(demo_url: str) -> None:
    with Asking(Settings(database_url=demo_url), allow_anonymous=True) as asking:
        data = _feedback(asking)
        assert data["example"] is None
        assert "anybody could speak in this user's name" in data["warnings"][0]
        assert asking.client.post(f"{EXAMPLES}/ex_1/approve", json={}).status_code == 403
        assert not run(asking.services.store.learned.visible("default", "mallory"), 10).examples
        learned = asking.services.store.learned
        assert run(learned.feedback("mallory", data["run_id"]), 10) is not None
        mine = example("default", "mallory", QUESTION)
        run(learned.add("default", [mine]), 10)
        said = {"run_id": data["run_id"], "rating": "unsatisfied", "user_id": "mallory"}
        assert asking.client.post(FEEDBACK, json=said, buffered=True).status_code == 200
        gone = asking.client.delete(f"{EXAMPLES}/{mine.example_id}?user_id=mallory", buffered=True)
        assert gone.status_code == 403
        assert run(learned.visible("default", "mallory"), 10).examples == (mine,)
        run(learned.delete("default", mine.example_id, "mallory"), 10)


def test_learning_can_be_switched_off(demo_url: str) -> None:
    with Asking(Settings(database_url=demo_url), learning=False) as asking:
        data = _feedback(asking)
        assert data["example"] is None
        assert "LEARNING" in data["warnings"][0]


def test_what_was_confirmed_answers_its_user_again(people: People) -> None:
    people.say("alice", people.ask("alice")["run_id"], "need_modification", modified_sql=RIGHT)
    again = people.ask("alice")
    assert again["sql"] == RIGHT
    other = people.ask("bob")
    assert other["sql"] != RIGHT
    known = people.examples("alice")[0]["example_id"]
    assert people.call("rev", f"{EXAMPLES}/{known}/approve", {})[0] == 200
    assert people.ask("bob")["sql"] == RIGHT
    assert people.call("rev", f"{EXAMPLES}/{known}/reject", {})[0] == 200
    assert people.ask("bob")["sql"] == other["sql"]
