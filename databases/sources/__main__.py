"""`python -m databases.sources`: attaches databases to a hub, so that one question can be about
several.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial

from psycopg2.extensions import parse_dsn

from common.check_report import language_of_environment
from common.text import Lang, Text
from databases.sources.hub import Hub
from databases.sources.source_address import SourceError, source_address


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m databases.sources", description=__doc__)
    parser.add_argument(
        "--hub",
        default=os.environ.get("HUB_URL", ""),
        help="URL of the hub for a role that may create extensions and servers; default: HUB_URL",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    attach = commands.add_parser("attach", help="make a source's tables tables of the hub")
    attach.add_argument("name", help="of the source: its schema in the hub")
    attach.add_argument("url", help="of the source, for a role that can only read")
    attach.add_argument(
        "--reader", default="", help="the hub's role that asks; default: that of DATABASE_URL"
    )
    attach.add_argument("--schemas", default="", help="of the source, by commas; default: all")
    attach.add_argument("--views", action="store_true", help="attach the source's views as well")
    attach.add_argument(
        "--no-references",
        action="store_true",
        help="take no column for a reference to or from another source",
    )
    for name, text in (
        ("refresh", "follow the changes of sources"),
        ("check", "prove that sources can only be read"),
        ("detach", "remove sources from the hub"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("names", nargs="+" if name == "detach" else "*", metavar="name")

    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 when it failed for a source."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.hub:
        parser.error("give the hub's URL by --hub or HUB_URL")

    try:
        hub = Hub(options.hub, _say)
    except SourceError as error:
        _complain(error)
        return 1

    try:
        return _run(hub, options)
    finally:
        hub.close()


def _run(hub: Hub, options: argparse.Namespace) -> int:
    if options.command == "attach":
        return _exit_status_of(partial(_attach, hub, options))

    each = {"refresh": hub.refresh, "check": hub.check, "detach": hub.detach}[options.command]
    results = [_exit_status_of(partial(each, name)) for name in options.names or hub.names()]
    return max(results, default=0)


def _attach(hub: Hub, options: argparse.Namespace) -> None:
    reader = options.reader or _asking_role()
    schemas = [schema for schema in options.schemas.split(",") if schema]
    address = source_address(options.url)
    hub.attach(
        options.name,
        address,
        reader,
        schemas,
        with_views=options.views,
        with_references=not options.no_references,
    )


def _asking_role() -> str:
    role = parse_dsn(os.environ.get("DATABASE_URL", "")).get("user", "")
    if not role:
        raise SourceError(
            "请用 --reader 给出枢纽中提问的角色。", "Give the hub's role that asks, by --reader."
        )

    return str(role)


def _exit_status_of(act: Callable[[], None]) -> int:
    try:
        act()
    except SourceError as error:
        _complain(error)
        return 1

    return 0


def _say(line: Text) -> None:
    sys.stdout.write(f"{line.to(_language())}\n")


def _complain(error: SourceError) -> None:
    sys.stderr.write(f"{error.text.to(_language())}\n")


def _language() -> Lang:
    return language_of_environment(os.environ)


if __name__ == "__main__":
    sys.exit(main())
