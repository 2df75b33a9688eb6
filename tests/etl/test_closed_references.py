"""Transformations leave no trace of what is closed to their caller, whatever refers to it: all that
is answered is what it would be if the closed tables, columns or rows were not there.
"""

import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from api.access.key_file import KeyFile
from app_config import Settings
from common.actor import Actor
from databases.demo.loader import DemoServer
from databases.demo.reader import READER
from tests.support.asking import Asking, frames
from tests.support.databases import as_admin, execute
from tests.support.etl_model import hands_in
from tests.support.openai_server import OpenAiServer
from tests.support.people import EXAMPLES, LESSONS, People
from tests.support.tool_bench import ToolBench

# What begins with `zq` is closed: a child and a parent that open tables share, a link between two
# of them, columns and parents of composite keys, a child's own key.
TABLES = """
CREATE TABLE city (id integer PRIMARY KEY, name text, region text);
CREATE TABLE visit (id integer PRIMARY KEY, city_id integer REFERENCES city, paid_on date,
    amount numeric(12,2));
CREATE TABLE zqdeal (id integer PRIMARY KEY REFERENCES visit, city_id integer REFERENCES city,
    zqprice numeric(12,2));
CREATE TABLE zqfirm (id integer PRIMARY KEY, zqname text);
CREATE TABLE invoice (id integer PRIMARY KEY, firm_id integer REFERENCES zqfirm, total integer);
CREATE TABLE refund (id integer PRIMARY KEY, firm_id integer REFERENCES zqfirm, total integer);
CREATE TABLE member (id integer PRIMARY KEY, name text);
CREATE TABLE course (id integer PRIMARY KEY, title text);
CREATE TABLE zqbooking (member_id integer REFERENCES member, course_id integer REFERENCES course,
    PRIMARY KEY (member_id, course_id));
CREATE TABLE shift (site text, slot integer, zqslot integer, day date,
    PRIMARY KEY (site, zqslot), UNIQUE (site, slot));
CREATE TABLE tally (id integer PRIMARY KEY, site text, slot integer, zqslot integer, qty integer,
    FOREIGN KEY (site, zqslot) REFERENCES shift);
CREATE TABLE zqroom (house text, no integer, PRIMARY KEY (house, no));
CREATE TABLE stay (id integer PRIMARY KEY, house text, no integer, nights integer,
    FOREIGN KEY (house, no) REFERENCES zqroom);
CREATE TABLE clean (id integer PRIMARY KEY, house text, no integer,
    FOREIGN KEY (house, no) REFERENCES zqroom);
CREATE VIEW zqboth AS SELECT d.zqprice, v.amount FROM visit v JOIN zqdeal d ON d.id = v.id;
CREATE VIEW zqguests AS SELECT m.name, c.title FROM member m
    JOIN zqbooking b ON b.member_id = m.id JOIN course c ON c.id = b.course_id;
CREATE VIEW by_city AS SELECT city_id, sum(amount) AS amount FROM visit GROUP BY 1;
INSERT INTO city VALUES (1, 'Oslo', 'north'), (2, 'Rome', 'south'), (3, 'Bern', NULL);
INSERT INTO visit SELECT i, nullif(i % 4, 0), date '2026-01-15' + 9 * i, i
    FROM generate_series(1, 9) i;
INSERT INTO zqdeal SELECT i, 1 + i % 3, 4711 FROM generate_series(1, 7) i;
INSERT INTO zqfirm SELECT i, 'zqname' || i FROM generate_series(1, 30) i;
INSERT INTO invoice SELECT i, 1 + i % 5, i FROM generate_series(1, 9) i;
INSERT INTO refund SELECT i, 1 + i % 3, i FROM generate_series(1, 6) i;
INSERT INTO member SELECT i, 'zoe ' || i FROM generate_series(1, 5) i;
INSERT INTO course VALUES (1, 'yoga'), (2, 'judo');
INSERT INTO zqbooking SELECT i, 1 + i % 2 FROM generate_series(1, 4) i;
INSERT INTO shift SELECT 'dock', i, 4711 + i, date '2026-01-01' + i FROM generate_series(1, 6) i;
INSERT INTO tally SELECT i, 'dock', 1 + i % 6, 4712 + i % 6, i FROM generate_series(1, 9) i;
INSERT INTO zqroom SELECT 'villa', i FROM generate_series(1, 8) i;
INSERT INTO stay SELECT i, 'villa', 1 + i % 4, i FROM generate_series(1, 9) i;
INSERT INTO clean SELECT i, 'villa', 1 + i % 4 FROM generate_series(1, 9) i;
"""
OPEN = ["city", "visit", "invoice", "refund", "member", "course", "shift", "tally", "stay", "clean"]
CLOSED_TABLES = ["zqdeal", "zqfirm", "zqbooking", "zqroom", "zqboth", "zqguests"]
CLOSED = [*CLOSED_TABLES, "shift.zqslot", "tally.zqslot"]
WITHOUT = """
DROP TABLE zqdeal, zqfirm, zqbooking, zqroom CASCADE;
ALTER TABLE shift DROP COLUMN zqslot CASCADE;
ALTER TABLE tally DROP COLUMN zqslot CASCADE;
"""
REVOKED = f"""
REVOKE ALL ON {", ".join(CLOSED_TABLES)}, shift, tally FROM {READER};
GRANT SELECT (site, slot, day) ON shift TO {READER};
GRANT SELECT (id, site, slot, qty) ON tally TO {READER};
"""
ROW_RULES = """
tables:
  public.city: [{groups: [guests], rows: id <> 2}, {groups: [staff], rows: all}]
  public.visit: [{groups: [guests], rows: id <= 6}, {groups: [staff], rows: all}]
  public.zqfirm: [{groups: [guests], rows: id <= 2}, {groups: [staff], rows: all}]
  public.zqbooking: [{groups: [guests], rows: member_id <= 1}]
  public.zqroom: [{groups: [guests], rows: no <> 2}]
  public.shift: [{groups: [guests], rows: slot <> 3}, {groups: [staff], rows: all}]
  public.zqdeal: [{groups: [guests], rows: id < 0}, {groups: [staff], rows: all}]
"""
# Nothing else is deleted: what refers to these rows refers to nothing then.
WITHOUT_ROWS = """
SET session_replication_role = replica;
DELETE FROM city WHERE id = 2;
DELETE FROM visit WHERE id > 6;
DELETE FROM zqfirm WHERE id > 2;
DELETE FROM zqbooking WHERE member_id > 1;
DELETE FROM zqroom WHERE no = 2;
DELETE FROM shift WHERE slot = 3;
DELETE FROM zqdeal;
"""
SEMANTIC = """
version: 1
tables:
  zqdeal: {names: {en: zqsales}}
metrics:
  zqrevenue: {names: {en: zqrevenue}, table: zqdeal, expression: sum(zqprice)}
reports:
  zqreport: {sql: SELECT count(zqprice) FROM city c JOIN zqdeal d ON d.city_id = c.id}
  zqcount: {sql: SELECT count(zqslot) FROM shift}
  open_report: {sql: SELECT count(*) FROM city c JOIN visit v ON v.city_id = c.id}
"""
GROUPS = {"alice": ("staff",), "guest": ("guests",), "rev": ("reviewers",)}
ASK, LINEAGE, IMPACT = "/api/v0/etl/ask", "/api/v0/etl/lineage", "/api/v0/etl/impact"
QUICK = {"mutants": False, "interactive": False}


def _joined(left: str, right: str, *group: str, **more: Any) -> dict[str, Any]:
    """An intent that joins two tables and, if there is one, adds the second column up by the
    first.
    """
    join = {"left": left, "right": right, **more}
    operations: list[dict[str, Any]] = [{"order": 1, "action": "join", "parameters": join}]
    if group:
        by = [{"column": group[0], "as": "g"}]
        measures = [{"function": "sum", "column": group[1], "as": "total"}]
        parameters = {"group_by": by, "measures": measures}
        operations.append({"order": 2, "action": "aggregate", "parameters": parameters})

    sources = [{"table_name": left}, {"table_name": right}]
    target = {"table_name": "made"}
    return {
        "summary": "x",
        "data_sources": sources,
        "data_target": target,
        "operations": operations,
    }


def _read(table: str, action: str = "", /, **parameters: Any) -> dict[str, Any]:
    step = {"order": 1, "action": action, "parameters": parameters}
    sources = [{"table_name": table}]
    return {"summary": "x", "data_sources": sources, "operations": [step] if action else []}


CHILD = _joined("city", "zqdeal", "city.region", "zqdeal.zqprice")
PARENT = _joined("invoice", "zqfirm", "zqfirm.zqname", "invoice.total")
COMPOSITE = _joined("tally", "shift", "shift.day", "tally.qty")
SHARED = _joined("visit", "city", "city.region", "visit.amount")
ABOVE = {"column": "shift.zqslot", "operator": ">", "value": 1}
NARROWED = _read("shift", "filter", conditions=[ABOVE])
INTENTS = (
    *(CHILD, PARENT, COMPOSITE, SHARED, NARROWED),
    {**SHARED, "data_target": {"table_name": "zqdeal"}},
    _joined("visit", "zqdeal"),
    _joined("visit", "public.zqboth"),
    _joined("invoice", "refund"),
    _joined("invoice", "refund", on=[["invoice.firm_id", "refund.firm_id"]]),
    _joined("member", "course"),
    _joined("tally", "shift", on=[["tally.site", "shift.site"], ["tally.slot", "shift.slot"]]),
    _joined("tally", "shift", on=[["tally.zqslot", "shift.zqslot"]]),
    _joined("stay", "clean"),
    _joined("stay", "zqroom"),
    _read("tally"),
    _read("shift", "dedup", table="shift", keys=["site"], order_by=[]),
    _read("visit", "transform", **{"as": "y", "expression": "visit.amount + zqdeal.zqprice"}),
)
SENTENCES = (
    "join visit and city, monthly sum of amount by region, into made",
    "join visit and zqdeal, sum of zqprice by region, into made",
    "join invoice and refund, sum of total by firm_id, into made",
    "members who never booked yoga, into made",
    "zqrevenue by region",
    "把 tally 和 shift 关联，按 day 汇总 qty，写入 made",
    "把 stay 和 clean 关联，汇总 nights，写入 made",
    "按 zqfirm 汇总 total，写入 made",
)
CALLS: Mapping[str, Mapping[str, Any]] = {
    "search_assets": {"query": "zqdeal"},
    "get_table_lineage": {"table": "visit", "direction": "both"},
    "search_reference_sql": {"query": "sum of amount by region"},
    "kg_join_hints": {"tables": OPEN},
    "kg_quality_rules": {"table": "shift"},
}
# What differs from one run to the next.
VOLATILE = {"conversation_id", "interrupt_id", "sha256", "bytes", "timings_ms", "ms"}
_RANDOM = re.compile(r'[a-z]+_[0-9a-z]{16,}|"(?:ms|[a-z]+_ms|sample|build|test|mutate)": [\d.]+')
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:\+00:00|Z)")


def _stable(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _stable(value) for key, value in found.items() if key not in VOLATILE}
    if isinstance(found, list | tuple):
        return [_stable(one) for one in found]
    if isinstance(found, str):
        return _INSTANT.sub("…", _RANDOM.sub("…", found))

    return found


class Guests(People):
    """A colleague who may read all, and a guest to whom something is closed."""

    def finished(self, who: str, run_id: str) -> tuple[list[Any], dict[str, str]]:
        """The events of a run, and the files that it has made."""
        headers = {"Authorization": f"Bearer {self._keys[who]}"}
        run = f"/api/v0/runs/{run_id}"
        with self.asking.client.get(f"{run}/events", headers=headers, buffered=True) as response:
            events = list(frames(response.get_data().decode()))

        with self.asking.client.get(f"{run}/artefact", headers=headers, buffered=True) as response:
            if response.status_code != 200:
                return events, {}
            with zipfile.ZipFile(io.BytesIO(response.get_data())) as files:
                return events, {name: files.read(name).decode() for name in files.namelist()}

    def makes_known(self, intent: Mapping[str, Any]) -> None:
        """A colleague's draft, which a reviewer approves for everybody."""
        code, asked = self.call("alice", ASK, {"intent": intent, "options": {"mutants": False}})
        assert (code, asked["kind"]) == (200, "feedback"), asked
        answer = {"interrupt_id": asked["interrupt_id"], "answer": {"rating": "satisfied"}}
        assert self.call("alice", f"/api/v0/runs/{asked['run_id']}/resume", answer)[0] == 202
        last = self.finished("alice", asked["run_id"])[0][-1]["data"]
        example = last["learned"]["example"]["example_id"]
        assert self.call("rev", f"{EXAMPLES}/{example}/approve", {"trust": "personal"})[0] == 200

    def shown(self, audit: Path) -> dict[str, Any]:
        """All that the guest is shown of all requests."""
        shown: dict[str, Any] = {}
        for request in (*INTENTS, *SENTENCES):
            asked = {"question" if isinstance(request, str) else "intent": request}
            code, data = self.call("guest", ASK, {**asked, "options": QUICK})
            shown[json.dumps(request)] = code, data, self.finished("guest", data.get("run_id", ""))

        for table in (*OPEN, *CLOSED):
            query = f"table={table}&direction=both&depth=9"
            for path in (f"{LINEAGE}?{query}", f"{IMPACT}?{query}", f"{IMPACT}?{query}&column=id"):
                shown[path] = self.call("guest", path)

        for name, arguments in CALLS.items():
            bench = ToolBench(self.asking, audit, Actor("guest", GROUPS["guest"]))
            result = bench.call(name, arguments)
            shown[name] = result.error_type, result.text

        for path in (EXAMPLES, LESSONS):
            shown[path] = self.call("guest", path)

        stable: dict[str, Any] = _stable(shown)
        return stable


@pytest.mark.slow
@pytest.mark.parametrize("way", ["model", "grants", "rows"])
def test_what_is_closed_might_as_well_not_be_there(
    make_database: Callable[[str], str],
    make_app_database: Callable[[], str],
    embedded_server: DemoServer,
    scratch_url: str,
    model: OpenAiServer,
    tmp_path: Path,
    way: str,
) -> None:
    semantic = tmp_path / "semantic.yaml"
    semantic.write_text(SEMANTIC)
    keys = KeyFile(tmp_path / "api_keys.json")
    texts = {name: keys.create(name, groups=groups)[0] for name, groups in GROUPS.items()}
    limits: dict[str, Any] = {}
    if way == "model":
        denied = "; ".join(f"guests: public.{name}" for name in CLOSED)
        limits = {"group_denied_objects": denied}
    if way == "rows":
        rules = tmp_path / "rules.yaml"
        rules.write_text(ROW_RULES)
        limits = {"row_rules": str(rules)}

    def shown(*, is_there: bool) -> dict[str, Any]:
        without = WITHOUT_ROWS if way == "rows" else WITHOUT
        url = make_database(TABLES if is_there else TABLES + without)
        if way == "grants" and is_there:
            execute(as_admin(url, embedded_server.admin_url), REVOKED)
        settings = Settings(
            database_url=url,
            app_database_url=make_app_database(),
            scratch_database_url=scratch_url,
            data_dir=str(tmp_path),
            semantic_file=str(semantic),
            reviewer_groups="reviewers",
            **limits,
        )
        model.requests.clear()
        model.default = hands_in()
        with Asking(settings, model if way == "model" else None) as asking:
            guests = Guests(asking, texts, tmp_path / "audit.jsonl")
            if way == "model" and is_there:
                for intent in (CHILD, PARENT, NARROWED, COMPOSITE):
                    guests.makes_known(intent)

            model.requests.clear()
            return {
                **guests.shown(tmp_path / "audit.jsonl"),
                "sent": _stable([request.params for request in model.requests]),
            }

    with_it, without_it = shown(is_there=True), shown(is_there=False)
    proven = [one for one in with_it.values() if one[1:] and '"proven"' in json.dumps(one[1])]
    assert len(proven) > 4
    different = {about for about in with_it if with_it[about] != without_it[about]}
    assert different == set()
