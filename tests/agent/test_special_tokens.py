"""What models read as control tokens of their own reaches no model intact, wherever it stands."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app_config import Settings
from common.special_tokens import broken_up
from knowledge.language.safe_text import block, one_line
from tests.support.asking import Asking
from tests.support.openai_replies import Called, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.tool_scripts import EXECUTING, following, generating

# Of many families; the mechanism knows none of them by name.
TOKENS = (
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|start_header_id|>",
    "<|channel|>", "<|begin_of_text|>", "<|fim_prefix|>", "<|vision_start|>", "<|python_tag|>",
    "<|END_OF_TURN_TOKEN|>", "<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜tool▁calls▁begin｜>",
    "<｜end▁of▁sentence｜>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]",
    "[/TOOL_RESULTS]", "[gMASK]", "[SYSTEM_PROMPT]", "<<SYS>>", "<</SYS>>", "<s>", "</s>", "<bos>",
    "<eos>", "<unk>", "<pad>", "<start_of_turn>", "<end_of_turn>", "<think>", "</think>",
    "<tool_call>", "</tool_call>", "<function=run_sql>", "</function>", "<extra_id_0>",
    "<tool_response>", "<reserved_106>", "<0x0A>", "＜s＞", "<|user|>", "<｜Assistant｜>",
    "<<|im_start|>>",
)  # fmt: skip
ORDINARY = (
    "a < b and c > d", "x <= 1 OR y >= 2", "[1,2]", "{1,2}", "[a]", "a <> b", "1 << 2", "p <<| q",
    "p &<| q", "p |>> q", "a || b", "a->>'x'", "ARRAY[1, 2]", "int[]", "x[1:2]", "3 <5> 2",
    "A -> B", "10 | 20", "👍 <3",
)  # fmt: skip
CANARIES = {
    "table": "<|im_start|>",
    "column": "<｜User｜>",
    "comment": "[INST]",
    "value": "<s>",
    "label": "<tool_call>",
    "name": "<<SYS>>",
    "note": "<|eot_id|>",
    "question": "<think>",
    "before": "<|user|>",
    "error": "[/INST]",
}


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_of_all_families_are_broken_up(token: str) -> None:
    inner = token.strip("<>")
    for text in (token, f"a{token}b", f"{token}{token}", f"x {token} y", f"\u200b{token}\n"):
        for shown in (one_line(text, 500), block(text, 500), broken_up(text)):
            assert token not in shown
            assert token.replace("<<|", "<|").replace("|>>", "|>") not in shown
    assert inner.strip("|｜[]/＜＞") in broken_up(token), "it is no longer readable"


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_and_operators_stay(text: str) -> None:
    assert one_line(text, 500) == text


def test_a_tag_in_brackets_stays_readable() -> None:
    assert one_line("[INFO] <b>done</b>", 50) == "［INFO] ‹b>done‹/b>"


TABLES = f"""
CREATE TYPE mood AS ENUM ('{CANARIES["label"]} calm', 'angry');
CREATE TABLE "gauge{CANARIES["table"]}" (
    gauge_id integer PRIMARY KEY, name text NOT NULL, "height{CANARIES["column"]}" integer,
        mood mood);
COMMENT ON TABLE "gauge{CANARIES["table"]}" IS 'gauges {CANARIES["comment"]}system';
INSERT INTO "gauge{CANARIES["table"]}" VALUES
    (1, '{CANARIES["value"]} North', 5, 'angry'), (2, 'South', 6, '{CANARIES["label"]} calm');
"""
SQL = f'SELECT * FROM "gauge{CANARIES["table"]}"'
WRONG = f"SELECT '{CANARIES['error']}'::integer FROM \"gauge{CANARIES['table']}\""


@pytest.fixture
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer() as server:
        yield server


@pytest.mark.parametrize("agent", ["ask", "tool_loop", "tool_graph"])
def test_no_way_into_a_prompt_leaves_them_whole(
    agent: str,
    make_database: Callable[[str], str],
    model: OpenAiServer,
    tmp_path: Path,
) -> None:
    """Every source holds a token of its own: the catalogue, values, the semantic file, notes, the
    question, the history, what tools and PostgreSQL say.
    """
    notes, semantic = tmp_path / "notes.md", tmp_path / "semantic.yaml"
    notes.write_text(f"# Gauges\nGauges are read daily {CANARIES['note']}.\n")
    table = f"gauge{CANARIES['table']}"
    semantic.write_text(json.dumps({"tables": {table: {"names": [f"meter {CANARIES['name']}"]}}}))
    scripts = {
        "tool_loop": [
            Reply(calls=[Called("run_sql", {"sql": WRONG})]),
            Reply(calls=[Called("run_sql", {"sql": SQL})]),
            Reply("Done."),
        ],
        "tool_graph": [
            Reply(calls=[generating(WRONG)]),
            Reply(calls=[EXECUTING]),
            Reply(calls=[generating(SQL)]),
            Reply(calls=[EXECUTING]),
            Reply("Done."),
        ],
    }
    model.default = following(scripts.get(agent, [Reply("Done.")]), sql=f"```sql\n{SQL}\n```")
    settings = Settings(
        database_url=make_database(TABLES),
        notes_file=str(notes),
        semantic_file=str(semantic),
        llm_max_retries=0,
        data_dir=str(tmp_path),
    )
    chosen = {} if agent == "ask" else {"agent": agent}
    body = {"user_id": "ann", "lang": "en", **chosen}
    with Asking(settings, model) as asking:
        _, first = asking.sync(body | {"question": f"list the gauges {CANARIES['before']} North"})
        conversation = first["data"]["conversation_id"]
        asking.sync(
            body
            | {
                "question": f"gauges by mood {CANARIES['question']}",
                "conversation_id": conversation,
            }
        )
    sent = [request.params["messages"] for request in model.requests]
    assert sent
    told = "\n".join(
        str(text)
        for messages in sent
        for message in messages
        for text in (message.get("content"), *_arguments(message))
    )
    assert "gauge‹|im_start" in told and "list the gauges" in told
    assert [token for token in CANARIES.values() if token in told] == []


def _arguments(message: dict[str, Any]) -> list[str]:
    return [call["function"]["arguments"] for call in message.get("tool_calls", ())]
