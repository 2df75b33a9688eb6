"""The semantic file: seen by reviewers, changed by proposals that an operator applies."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api.access.key_file import KeyFile
from app_config import Settings
from knowledge.semantic.__main__ import main
from tests.support.api_schemas import check_schema
from tests.support.asking import Asking
from tests.support.people import People

DDL = "CREATE TABLE sale (sale_id int PRIMARY KEY, amount numeric, sold_on date);"
FILE = """version: 1

tables:
  sale:
    names: {en: sale}   # what people call it
    columns:
      amount: {names: {en: amount}}
"""
SEMANTIC, PROPOSALS = "/api/v0/semantic", "/api/v0/semantic/proposals"
BEFORE, AFTER = (
    "      amount: {names: {en: amount}}",
    "      amount: {names: {en: [amount, turnover]}}",
)
Operate = Callable[..., tuple[int, str]]


@pytest.fixture
def settings(
    make_database: Callable[[str], str], make_app_database: Callable[[], str], tmp_path: Path
) -> Settings:
    path = tmp_path / "semantic.yaml"
    path.write_text(FILE)
    return Settings(
        database_url=make_database(DDL),
        semantic_file=str(path),
        api_keys_file=str(tmp_path / "keys.json"),
        reviewer_groups="stewards",
        data_dir=str(tmp_path),
        app_database_url=make_app_database(),
    )


@pytest.fixture
def people(settings: Settings) -> Iterator[People]:
    keys = KeyFile(Path(settings.api_keys_file))
    made = {
        "alice": keys.create("alice"),
        "rev": keys.create("rev", groups=("stewards",)),
        "ron": keys.create("ron", groups=("stewards",)),
    }
    with Asking(settings) as asking:
        yield People(asking, {name: key for name, (key, _) in made.items()}, Path())


@pytest.fixture
def operate(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Operate:
    """Runs the operator's command; gives its exit code and what it says."""
    monkeypatch.chdir(settings.data_dir)
    for name in ("database_url", "semantic_file", "app_database_url", "redis_url", "data_dir"):
        monkeypatch.setenv(name.upper(), getattr(settings, name))

    def run(*words: str) -> tuple[int, str]:
        code = main(words)
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def _proposed(people: People, who: str = "rev", **fields: Any) -> tuple[int, dict[str, Any]]:
    return people.call(who, PROPOSALS, {"before": BEFORE, "after": AFTER, **fields})


def test_a_proposal_is_seen_applied_and_used(
    people: People, settings: Settings, operate: Operate
) -> None:
    path = Path(settings.semantic_file)
    code, seen = people.call("rev", SEMANTIC)
    assert (code, seen["name"], seen["text"], seen["problems"]) == (200, path.name, FILE, [])
    code, made = _proposed(people, note="people say turnover", revision=seen["revision"])
    assert code == 201
    check_schema("Proposed", made)
    proposal = made["proposal"]
    assert (proposal["state"], proposal["author"]) == ("open", "rev")
    assert f"-{BEFORE}\n+{AFTER}\n" in proposal["diff"]
    assert path.read_text() == FILE  # nothing is changed by it
    code, listed = people.call("ron", PROPOSALS)
    assert (code, listed["proposals"]) == (200, [proposal])

    path.write_text(f"# of the shop\n{FILE}")  # its lines stand elsewhere by now
    code, said = operate("proposals")
    assert (code, "people say turnover" in said, AFTER in said) == (0, True, True)
    code, said = operate("apply", proposal["proposal_id"], "--by", "olga")
    assert (code, "applied by olga" in said) == (0, True), said
    assert path.read_text() == f"# of the shop\n{FILE.replace(BEFORE, AFTER)}"
    _, listed = people.call("rev", PROPOSALS)
    assert (listed["proposals"][0]["state"], listed["proposals"][0]["settled_by"]) == (
        "applied",
        "olga",
    )
    assert operate("apply", proposal["proposal_id"])[0] == 1  # once
    assert people.call("rev", f"{PROPOSALS}/{proposal['proposal_id']}", method="DELETE")[0] == 409
    assert people.call("rev", SEMANTIC)[1]["text"] == path.read_text()


def test_only_reviewers_see_the_file_and_only_authors_withdraw(people: People) -> None:
    for method, path in (("GET", SEMANTIC), ("GET", PROPOSALS)):
        assert people.call("alice", path, method=method)[0] == 403
    assert _proposed(people, "alice")[0] == 403
    known = _proposed(people)[1]["proposal"]["proposal_id"]
    assert people.call("ron", f"{PROPOSALS}/{known}", method="DELETE")[0] == 404
    code, settled = people.call("rev", f"{PROPOSALS}/{known}", method="DELETE")
    assert (code, settled["proposal"]["state"]) == (200, "withdrawn")


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ({"after": BEFORE}, 400, "changes nothing"),
        ({"after": "      amuont: {names: {en: amount}}"}, 400, "did you mean 'amount'"),
        ({"after": "      amount: {naems: {en: amount}}"}, 400, "semantic.yaml:7"),
        ({"after": "   - : ]"}, 400, "semantic.yaml"),
        ({"before": "      nothing of the file"}, 409, "open it again"),
        ({"revision": "another"}, 409, "open it again"),
        (
            {
                "before": "",
                "after": "metrics:\n  m: {table: sale, expression: pg_sleep(1)}",
            },
            400,
            "pg_sleep",
        ),
    ],
)
def test_a_change_that_would_not_do_is_refused_with_what_is_wrong(
    people: People, settings: Settings, body: dict[str, Any], code: int, says: str
) -> None:
    answered, data = _proposed(people, lang="en", **body)
    assert (answered, says in data["error"]) == (code, True), json.dumps(data)
    assert people.call("rev", PROPOSALS)[1]["proposals"] == []


def test_what_no_longer_fits_is_declined_by_hand(
    people: People, settings: Settings, operate: Operate
) -> None:
    path = Path(settings.semantic_file)
    known = _proposed(people)[1]["proposal"]["proposal_id"]
    path.write_text(FILE.replace("{en: amount}", "{en: sum}"))
    code, said = operate("apply", known)
    assert (code, "the file has changed since" in said) == (1, True)
    assert "sum" in path.read_text()
    code, said = operate("decline", known, "--reason", "done otherwise")
    assert (code, "declined by operator" in said) == (0, True)
    (listed,) = people.call("rev", PROPOSALS)[1]["proposals"]
    assert (listed["state"], listed["reason"]) == ("declined", "done otherwise")
    assert list(path.parent.glob(".semantic*")) == []
