"""`python -m terminal "question"` asks once; without a question it asks line by line.

Exit codes: 0 an answer, 1 a failure or refusal, 130 stopped by Ctrl-C.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from terminal.asking import TerminalConversation, converse
from terminal.service_connection import (
    CannotAsk,
    LocalConnection,
    ServerConnection,
    ServiceConnection,
)

_URL = "http://127.0.0.1:8084"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments` (default: `sys.argv`)."""
    given = _parser().parse_args(arguments)
    options = {
        name: value
        for name in ("agent", "database", "lang")
        if (value := getattr(given, name)) is not None
    }
    conversation = TerminalConversation(
        _connection(given),
        Console(),
        Console(stderr=True),
        options,
        given.conversation,
        given.json,
        not given.no_sql,
    )
    try:
        if given.question is None:
            converse(conversation, input)
            return 0

        is_answered = conversation.ask(given.question)
        if is_answered and given.export is not None:
            conversation.export(given.export)
    except CannotAsk as error:
        conversation.notes.print(str(error), style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        return 130

    return 0 if is_answered else 1


def _connection(given: argparse.Namespace) -> ServiceConnection:
    if not given.here:
        return ServerConnection(given.url, given.key)

    # Only here: the service takes seconds to import.
    from unified_api import app

    return LocalConnection(app)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m terminal", description="Ask a Citu from the terminal."
    )
    parser.add_argument("question", nargs="?", help="without one: line by line")
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--url", default=os.environ.get("CITU_URL", _URL), help="of the service (or CITU_URL)"
    )
    place.add_argument(
        "--here", action="store_true", help="run the service in this process, by the settings here"
    )
    parser.add_argument(
        "--key", default=os.environ.get("CITU_KEY", ""), help="its API key (or CITU_KEY)"
    )
    parser.add_argument("--agent", help="ask, tool_loop, tool_graph or etl")
    parser.add_argument("--database", help="where there are several")
    parser.add_argument("--lang", choices=("zh", "en"))
    parser.add_argument("--conversation", metavar="ID", help="goes on with a conversation")
    parser.add_argument(
        "--export", type=Path, metavar="FILE", help="the rows: .csv .json .xlsx .png"
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument("--no-sql", action="store_true", help="don't print the SQL")
    return parser


if __name__ == "__main__":
    sys.exit(main())
