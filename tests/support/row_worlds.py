"""A database in which most rows are hidden from somebody, in both ways: by policies of the server
and by row rules.

What is hidden can be recognised: `told` finds any of it in whatever was sent, as a text or as a
number.
"""

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from api.access.key_file import KeyFile
from app_config import Settings
from tests.support.asking import STREAM, SYNC, Asking
from tests.support.openai_server import OpenAiServer, Reply

Way = Literal["policies", "rules"]

HIDDEN_ROWS = 41_239
TABLES = f"""
CREATE TABLE customer (id integer PRIMARY KEY, tenant text NOT NULL, name text, city text,
    phone text, note text);
CREATE TABLE sale (id integer PRIMARY KEY, tenant text NOT NULL,
    customer_id integer REFERENCES customer,
                   amount numeric(12,2), status text, sold_on date);
CREATE TABLE product (id integer PRIMARY KEY, name text);
CREATE TABLE membership (member text, tenant text);
INSERT INTO membership VALUES ('ann', 'north'), ('root', 'north'), ('root', 'south');
COMMENT ON TABLE sale IS 'sales'; COMMENT ON TABLE customer IS 'customers';
INSERT INTO customer VALUES (1, 'north', 'Acorn Ltd', 'Oslo', '555-100', '12'), (2, 'north',
    'Birch Ltd', 'Bergen',
    '555-101', '34'), (900001, 'south', 'Zanzicanary Ltd', 'Canaryville', '555-987654',
        'canarynote');
INSERT INTO sale SELECT i, 'north', 1 + i % 2, i, CASE WHEN i % 2 = 0 THEN 'paid' ELSE 'open' END,
    date '2026-01-01' + i FROM generate_series(1, 12) i;
INSERT INTO sale SELECT 910000 + i, 'south', 900001, 7654321.25, 'canarystatus', date '2041-12-24'
    FROM generate_series(1, {HIDDEN_ROWS}) i;
INSERT INTO product VALUES (1, 'Lamp'), (2, 'Desk');
CREATE VIEW busy AS SELECT c.name, s.amount FROM sale s JOIN customer c ON c.id = s.customer_id;
"""
POLICIES = """
ALTER TABLE customer ENABLE ROW LEVEL SECURITY; ALTER TABLE sale ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON customer FOR SELECT
    USING (tenant IN (SELECT m.tenant FROM membership m WHERE m.member =
        current_setting('citu.user_id', true)));
CREATE POLICY own_rows ON sale FOR SELECT
    USING (tenant = ANY (nullif(current_setting('citu.groups', true), '')::text[]));
ALTER VIEW busy SET (security_invoker = true);
"""
RULES = """
tables:
  public.customer:
    - groups: [south]
      rows: all
    - groups: [north]
      rows: tenant IN (SELECT m.tenant FROM public.membership m WHERE m.member = :user_id)
      masks: {phone: "'***'"}
  public.sale:
    - groups: [south]
      rows: all
    - groups: [north]
      rows: tenant = ANY(:groups)
"""
# Statements that would show something of a hidden row if they met it: values, counts, and errors
# that quote what they fail on.
PROBES = (
    "SELECT * FROM customer",
    "SELECT c FROM customer c",
    "SELECT to_jsonb(c) FROM customer c ORDER BY id DESC",
    "TABLE sale ORDER BY id DESC",
    "SELECT count(*), sum(amount), max(sold_on) FROM sale",
    "SELECT name FROM customer WHERE note::integer > 0",
    "SELECT 1 / (id - 900001) FROM customer",
    "SELECT (note || 'x')::integer FROM customer WHERE tenant = 'south'",
    (
        "SELECT count(*) FROM customer WHERE CASE WHEN tenant = 'south' "
        "THEN phone::date > '2000-01-01' ELSE true END"
    ),
    (
        "WITH customer AS (SELECT * FROM public.customer) SELECT * FROM customer "
        "WHERE note::integer > 0"
    ),
    "SELECT (SELECT max(name) FROM customer), s.* FROM sale s WHERE s.id > 900000",
    (
        "SELECT s.id, x.name FROM sale s, LATERAL (SELECT name FROM customer c "
        "WHERE c.id = s.customer_id) x"
    ),
    "SELECT name FROM customer UNION ALL SELECT status FROM sale",
    "SELECT * FROM busy ORDER BY amount DESC",
    "SELECT name FROM customer WHERE name LIKE 'Zanzi%' OR phone > '555-9'",
    "SELECT string_agg(DISTINCT status, ',') FROM ONLY public.sale",
    "SELECT * FROM sale TABLESAMPLE SYSTEM (100) WHERE id > 900000",
    "SELECT nothing FROM customer WHERE note::integer > 0",
    "SELECT current_setting('citu.user_id')",
    "SELECT set_config('citu.groups', '{south}', true), name FROM customer",
    "SELECT most_common_vals FROM pg_stats WHERE tablename = 'sale'",
    "SELECT reltuples FROM pg_class WHERE relname = 'sale'",
)
CANARIES = re.compile(
    r"zanzicanary|canary|987654|900001|(?<![\w.])765432[12]|2041-12-24|(?<!\d)412(39|51)(?!\d)|41,2(39|51)|9[15]\d{4}(?!\d)",
    re.IGNORECASE,
)
# Ids and times of answers, whose digits may look like those of hidden rows.
_IDS = re.compile(
    r"(citu|run|ex|ls|key|req)_[0-9A-Za-z_]+|[0-9a-f]{12,}|\d{4}-\d\d-\d\dT[\d:.+Z]+"
    r'|"created": ?\d+'
)


def told(data: bytes | str) -> list[str]:
    """Return what of the hidden rows is in the data: names, numbers, days, the number of rows."""
    text = data if isinstance(data, str) else _text_of(data)
    return [match[0] for match in CANARIES.finditer(_IDS.sub(" ", text))]


def _text_of(data: bytes) -> str:
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return " ".join(
                archive.read(name).decode("utf-8", "replace") for name in archive.namelist()
            )
    text = data.decode("utf-8", "replace")
    try:
        return json.dumps(json.loads(text), ensure_ascii=False) + text
    except ValueError:
        return text


@dataclass
class World:
    """An application over the database, and keys of users: `root` sees all rows, `ann` few, `eve`
    none.
    """

    asking: Asking
    url: str
    model: OpenAiServer | None
    audit_path: Path
    keys: dict[str, str]

    def fetch(self, who: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        """Return status and body of a request; a GET unless there is a body to send."""
        headers = {
            "Authorization": f"Bearer {self.keys[who]}",
            **{key.replace("_", "-"): headers[key] for key in headers},
        }
        sent = {"json": body} if body is not None else {}
        response = self.asking.client.open(
            path, method="POST" if sent else "GET", headers=headers, buffered=True, **sent
        )
        return response.status_code, response.get_data()

    def call(
        self, who: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """Return status and data of a request."""
        code, answer = self.fetch(who, path, body, **headers)
        return code, json.loads(answer)["data"]

    def ask(
        self, who: str, question: str, *replies: Reply, stream: bool = False, **fields: Any
    ) -> bytes:
        """Return the whole answer to a question; the model gives the replies, then says nothing of
        use.
        """
        if self.model is not None:
            self.model.forget_replies()
            self.model.replies(*replies)
        body = {"question": question, "routing_mode": "database_direct", **fields}
        return self.fetch(who, STREAM if stream else SYNC, body)[1]

    def answered(self, who: str, sql: str, question: str = "Some rows") -> dict[str, Any]:
        """Return the data of an answer by this SQL."""
        data: dict[str, Any] = json.loads(
            self.ask(who, question, Reply(sql), Reply("These are the rows."))
        )["data"]
        return data

    def audited(self, who: str) -> list[dict[str, Any]]:
        """Return the lines of the audit log about this user."""
        lines = map(json.loads, self.audit_path.read_text().splitlines())
        return [line for line in lines if line["user_id"] == who]


@contextmanager
def world(
    way: Way,
    make_database: Callable[[str], str],
    folder: Path,
    model: OpenAiServer | None = None,
    **changes: Any,
) -> Iterator[World]:
    """Open the application over a database of its own."""
    url = make_database(TABLES + (POLICIES if way == "policies" else ""))
    with serving(way, url, folder, model, **changes) as opened:
        yield opened


@contextmanager
def serving(
    way: Way,
    url: str,
    folder: Path,
    model: OpenAiServer | None = None,
    *,
    rules: str = RULES,
    **changes: Any,
) -> Iterator[World]:
    """Open the application over the database at `url`."""
    keys = KeyFile(folder / "api_keys.json")
    groups = {"root": ("north", "south", "reviewers"), "ann": ("north", "reviewers"), "eve": ()}
    texts = {name: keys.create(name, groups=groups[name])[0] for name in groups}
    audit_path = folder / "audit.jsonl"
    (folder / "rules.yaml").write_text(rules)
    limits: dict[str, Any] = (
        {"row_context": True} if way == "policies" else {"row_rules": str(folder / "rules.yaml")}
    )
    settings = Settings(database_url=url, data_dir=str(folder))
    limits |= {
        "audit_log": str(audit_path),
        "reviewer_groups": "reviewers",
        "value_lookup_timeout_s": 20.0,
    }
    with Asking(settings, model, **{**limits, **changes}) as asking:
        yield World(asking, url, model, audit_path, texts)


def prompts(requests: Iterable[Any]) -> str:
    """Return all that a model was sent."""
    return "\n".join(json.dumps(request.params, ensure_ascii=False) for request in requests)
