"""`python -m llm.replay ID`: sends a call from the log of prompts again, also to another model.

Prints both replies. What was redacted in the log is sent as it stands there. Settings come from the
environment and `.env`, as for the service.
"""

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dotenv import load_dotenv

from app_config import ConfigurationError, Settings
from common.errors import LlmUnavailable
from llm import Completion, InvalidEndpoint, open_model
from llm.model_log import KEPT, reply_fields
from llm.tool_calls import ToolDefinition, ToolOffer

_USAGE = 2  # exit code of a call that can't be sent


def find_call(path: Path, call_id: str) -> Mapping[str, Any] | None:
    """Return the line of that id, from the file or the full ones beside it; None: there is none.

    Args:
        call_id: an id, or `last` for the latest line.
    """
    latest = None
    for line in _lines(path):
        if line.get("id") == call_id:
            return line

        latest = line

    return latest if call_id == "last" else None


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    """Give all lines that are whole, the oldest first."""
    files = [Path(f"{path}.{number}") for number in range(KEPT, 0, -1)]
    for file in (*files, path):
        if not file.exists():
            continue

        with file.open(encoding="utf-8") as lines:
            for text in lines:
                try:
                    yield json.loads(text)
                except ValueError:
                    continue  # a full disk cut it


def offer_of(kept: Mapping[str, Any] | None) -> ToolOffer | None:
    """Return the tools that were offered, as they are logged."""
    if kept is None:
        return None

    tools = tuple(ToolDefinition(**tool) for tool in kept["tools"])
    return ToolOffer(tools, kept["choice"], kept["parallel"])


async def replay(settings: Settings, call: Mapping[str, Any]) -> Completion:
    """Send a logged call to the model of the settings.

    Raises:
        LlmUnavailable: it gave no reply.
        InvalidEndpoint: the settings name no model.
    """
    model = open_model(settings)
    if model is None:
        raise InvalidEndpoint("No model is set: OPENAI_API_KEY and OPENAI_MODEL name one.")

    try:
        return await model.complete(
            call["messages"], max_tokens=call["max_tokens"], offer=offer_of(call["offer"])
        )
    finally:
        await model.aclose()


def _reply_text(reply: Mapping[str, Any]) -> str:
    calls = [f"→ {call['name']}({call['arguments']})" for call in reply["tool_calls"]]
    return "\n".join([reply["text"], *calls]).strip() or "(nothing)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 when the model gives no reply, 2 when nothing can be sent."""
    logging.basicConfig(handlers=[logging.NullHandler()])
    parser = argparse.ArgumentParser(
        prog="python -m llm.replay", description="sends a logged call to a model again"
    )
    parser.add_argument("id", help="of a line of the log of prompts, or: last")
    parser.add_argument("--model", help="default: OPENAI_MODEL")
    parser.add_argument("--log", type=Path, help="default: MODEL_LOG")
    given = parser.parse_args(arguments)
    try:
        load_dotenv(Path(".env"))
        settings = Settings.from_env()
        if given.model:
            settings = replace(settings, openai_model=given.model)

        log = given.log or settings.model_log_path
        if log is None:
            raise ConfigurationError("MODEL_LOG names no file: give one by --log.")

        call = find_call(log, given.id)
        if call is None:
            raise ConfigurationError(f"{log} has no line with the id {given.id!r}.")

        completion = asyncio.run(replay(settings, call))
    except (ConfigurationError, InvalidEndpoint) as error:
        sys.stderr.write(f"{error}\n")
        return _USAGE
    except LlmUnavailable as error:
        sys.stderr.write(f"{error}\n")
        return 1

    before = f"(failed: {call['error']})" if call["reply"] is None else _reply_text(call["reply"])
    sys.stdout.write(
        f"--- {call['model']}, {call['time']}\n{before}\n"
        f"--- {settings.openai_model}, now\n{_reply_text(reply_fields(completion))}\n"
        f"--- tokens: {completion.usage.prompt_tokens} in, "
        f"{completion.usage.completion_tokens} out\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
