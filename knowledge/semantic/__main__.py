"""`python -m knowledge.semantic`: draft a semantic file from a database, check one, and apply or
decline what reviewers propose to change.
"""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from dotenv import load_dotenv

from app_config import ConfigurationError, Settings
from common.errors import CituError
from common.ports import UrlSource
from common.values import Catalog, Table
from databases.databases_file import DatabasesFileError, read_databases
from databases.datasources import DEFAULT
from databases.demo import SEMANTIC_FILE
from databases.embedded.embedded_server import EmbeddedServerError
from databases.options import DatabaseOptions, database_options
from databases.source import InvalidDatabaseUrl, Unreachable, database_sources, probe
from guard import AccessRuleError
from knowledge.semantic.checking import doubts_about, problems_of, read_catalog
from knowledge.semantic.draft import draft
from knowledge.semantic.operating import OperatedFile, ProposalRefused, proposal_text
from knowledge.semantic.problems import Problem, SemanticFileError, problem_list
from knowledge.semantic.semantic_format import SCHEMA_PATH, read_file
from store import Retention
from store.open_store import InvalidRedisUrl, open_store

_FAILURES = (
    ConfigurationError,
    AccessRuleError,
    EmbeddedServerError,
    InvalidDatabaseUrl,
    Unreachable,
    CituError,
    InvalidRedisUrl,
    DatabasesFileError,
    OSError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments` (default: `sys.argv`).

    Returns:
        0; 1: the file has problems, which are listed on stderr; 2: the database or a setting can't
            be used.
    """
    # the user of a command reads its sentences, no log
    logging.basicConfig(handlers=[logging.NullHandler()])
    given = _parser().parse_args(arguments)
    run: Callable[[Settings, argparse.Namespace], int] = given.run
    try:
        load_dotenv(Path(".env"))
        settings = Settings.from_env()
        if given.database_url:
            settings = replace(settings, database_url=given.database_url)

        return run(settings, given)
    except (SemanticFileError, ProposalRefused) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except _FAILURES as error:
        sys.stderr.write(f"{error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m knowledge.semantic", description="the semantic file (SEMANTIC_FILE)"
    )
    commands = parser.add_subparsers(
        required=True, metavar="draft | check | proposals | apply | decline"
    )
    drafting = commands.add_parser("draft", help="print a first file for a database")
    drafting.add_argument(
        "--tables",
        action="append",
        metavar="PATTERN",
        help="only these: name or schema.name, with *",
    )
    drafting.set_defaults(run=_draft)
    checking = commands.add_parser(
        "check", help="say what is wrong with a file, as file:line: message"
    )
    checking.add_argument("file", nargs="?", metavar="FILE", help="default: SEMANTIC_FILE")
    checking.set_defaults(run=_check)
    listing = commands.add_parser("proposals", help="show what reviewers propose to change")
    listing.set_defaults(run=_list_proposals)
    applying = commands.add_parser("apply", help="change the file as a proposal says")
    applying.set_defaults(run=_apply)
    declining = commands.add_parser("decline", help="settle a proposal without a change")
    declining.set_defaults(run=_decline)
    for command in (applying, declining):
        command.add_argument("proposal", metavar="ID")
        command.add_argument("--by", default="operator", help="who decides (default: operator)")

    declining.add_argument("--reason", default="", help="why, for its author")
    for command in (listing, applying, declining):
        command.add_argument(
            "--database", metavar="NAME", default=DEFAULT, help="one of DATABASES_FILE"
        )

    for command in (drafting, checking, listing, applying, declining):
        command.add_argument(
            "--database-url", metavar="URL", help="default: DATABASE_URL, else the embedded demo"
        )

    return parser


@contextmanager
def _asked_database(settings: Settings) -> Iterator[UrlSource]:
    sources = database_sources(settings.database_url, settings.app_database_url, settings.data_path)
    try:
        if settings.database_url:
            probe(settings.database_url)

        yield sources.asked
    finally:
        sources.hold.release()


def _draft(settings: Settings, given: argparse.Namespace) -> int:
    with _asked_database(settings) as source:
        catalog = read_catalog(source, database_options(settings))

    sys.stdout.write(draft(_matching_tables(catalog, given.tables), os.path.relpath(SCHEMA_PATH)))
    return 0


def _matching_tables(catalog: Catalog, patterns: Sequence[str] | None) -> Catalog:
    if not patterns:
        return catalog

    tables = tuple(table for table in catalog.tables if _matches(table, patterns))
    return replace(catalog, tables=tables).coherent()


def _matches(table: Table, patterns: Sequence[str]) -> bool:
    """Tell whether a pattern matches the table's name, with or without its schema."""
    for pattern in patterns:
        if fnmatchcase(table.name, pattern):
            return True
        if fnmatchcase(f"{table.schema}.{table.name}", pattern):
            return True

    return False


def _check(settings: Settings, given: argparse.Namespace) -> int:
    path = Path(given.file or settings.semantic_file or SEMANTIC_FILE).expanduser()
    read_file(path)  # what is wrong with the file itself is said without a database
    options = database_options(settings)
    with _asked_database(settings) as source:
        problems = problems_of(path, source, options)
        doubts = () if problems else tuple(doubts_about(path, read_catalog(source, options)))

    if problems:
        sys.stderr.write(f"{problem_list(str(path), problems)}\n")
        return 1

    for doubt in doubts:
        sys.stderr.write(f"{Problem(doubt.line, f'note: {doubt.text}').at(str(path))}\n")

    sys.stdout.write(f"{path} fits the database.\n")
    return 0


def _list_proposals(settings: Settings, given: argparse.Namespace) -> int:
    with _operated(settings, given.database) as operated:
        proposals = operated.listed()

    for proposal in proposals:
        sys.stdout.write(f"{proposal_text(proposal)}\n")

    return 0


def _apply(settings: Settings, given: argparse.Namespace) -> int:
    with _operated(settings, given.database) as operated:
        applied = operated.apply(given.proposal, given.by)

    sys.stdout.write(f"{proposal_text(applied)}\n")
    return 0


def _decline(settings: Settings, given: argparse.Namespace) -> int:
    with _operated(settings, given.database) as operated:
        declined = operated.decline(given.proposal, given.by, given.reason)

    sys.stdout.write(f"{proposal_text(declined)}\n")
    return 0


@contextmanager
def _operated(settings: Settings, name: str) -> Iterator[OperatedFile]:
    """Yield the semantic file of the database of that name, with its proposals."""
    url, path, options = _database_of(settings, name)
    sources = database_sources(url, settings.app_database_url, settings.data_path)
    try:
        store = partial(
            open_store,
            app_source=sources.app,
            redis_url=settings.redis_url,
            timeout_s=settings.store_timeout_s,
            retention=Retention(),
        )
        yield OperatedFile(path, name, sources.asked, options, store)
    finally:
        sources.hold.release()


def _database_of(settings: Settings, name: str) -> tuple[str, Path | None, DatabaseOptions]:
    """Return the address, the semantic file and the options of a database."""
    options = database_options(settings)
    if not settings.databases_file:
        path = Path(settings.semantic_file).expanduser() if settings.semantic_file else None
        return settings.database_url, path, options

    databases_file = read_databases(Path(settings.databases_file).expanduser(), options)
    for entry in databases_file.entries:
        if entry.name == name:
            return entry.url, entry.semantic_file, entry.options

    raise ProposalRefused(f"DATABASES_FILE has no database {name!r}: name one by --database.")


if __name__ == "__main__":
    sys.exit(main())
