"""`python -m knowledge.load`: loads question–SQL pairs, DDL and documentation, at the machine of
the service.

SQL is guarded and planned, and never run; of DDL only its text is kept. Loading the same again
changes nothing, and a file of DDL or documentation that is loaded again replaces what was loaded
from it before.
"""

import argparse
import asyncio
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from dotenv import load_dotenv

from app_config import ConfigurationError, Settings
from common.actor import NOBODY
from common.errors import CituError
from common.learning import Document
from databases.datasources import DEFAULT, Datasource, Datasources
from databases.embedded.embedded_server import EmbeddedServerError
from databases.options import database_options
from databases.source import InvalidDatabaseUrl, Sources, Unreachable, database_sources, probe
from guard import AccessRuleError
from knowledge.learning.documents import documents_of_ddl, documents_of_text
from knowledge.learning.intake import ImportOutcome, Intake
from store import Retention, Store
from store.open_store import InvalidRedisUrl, open_store

_FAILURES = (
    *(
        ConfigurationError,
        AccessRuleError,
        EmbeddedServerError,
        InvalidDatabaseUrl,
        InvalidRedisUrl,
        Unreachable,
    ),
    *(CituError, OSError, UnicodeDecodeError),
)
_FULL = "as much is kept as may be"
_PROSE = (".md", ".markdown", ".txt", ".rst")
_MAX_BYTES = 20 * 1024 * 1024  # of one file
_TRUSTS = ("candidate", "personal", "reviewed", "certified")
_TAKEN = ("added", "known")


class UnusableFile(OSError):
    """A file that can't be loaded; the message names it and says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Load what `arguments` name (default: `sys.argv`); says on stdout what became of each line and
    file.

    Returns:
        0; 1: something was not taken; 2: a file, the database or a setting can't be used.
    """
    logging.basicConfig(
        handlers=[logging.NullHandler()]
    )  # the user of a command reads its sentences, no log
    given = _parser().parse_args(arguments)
    if not (given.pairs or given.ddl or given.docs):
        sys.stderr.write("Nothing to load: give --pairs, --ddl or --docs.\n")
        return 2

    try:
        load_dotenv(Path(".env"))
        settings = Settings.from_env()
        settings = replace(settings, database_url=given.database_url or settings.database_url)
        with _sources(settings) as sources:
            return asyncio.run(_load(settings, sources, given))
    except _FAILURES as error:
        sys.stderr.write(f"{error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m knowledge.load", description="load what helps to answer questions"
    )
    several = partial(parser.add_argument, action="append", type=Path, default=[])
    several("--pairs", metavar="FILE", help='JSON Lines of {"question", "sql", "lang"?}')
    several("--ddl", metavar="FILE", help="SQL that describes tables; it is not run")
    several("--docs", metavar="PATH", help=f"a text, or a folder of {' '.join(_PROSE)}")
    parser.add_argument(
        "--database-url", metavar="URL", help="default: DATABASE_URL, else the embedded demo"
    )
    parser.add_argument(
        "--trust",
        choices=_TRUSTS,
        default="personal",
        help="of the pairs; personal (the default): "
        "nobody else sees them until a reviewer approves them",
    )
    parser.add_argument(
        "--author",
        metavar="USER",
        default="operator",
        help="whose the pairs are (default: operator)",
    )
    return parser


@contextmanager
def _sources(settings: Settings) -> Iterator[Sources]:
    sources = database_sources(settings.database_url, settings.app_database_url, settings.data_path)
    try:
        if settings.database_url:
            probe(settings.database_url)

        yield sources
    finally:
        sources.hold.release()


async def _load(settings: Settings, sources: Sources, given: argparse.Namespace) -> int:
    datasources = Datasources({DEFAULT: Datasource(sources.asked, database_options(settings))})
    retention = Retention(
        own_examples=settings.max_own_examples, shared_examples=settings.max_shared_examples
    )
    store = open_store(
        app_source=sources.app,
        redis_url=settings.redis_url,
        timeout_s=settings.store_timeout_s,
        retention=retention,
    )
    try:
        definitions = partial(datasources.definitions, DEFAULT)
        database = datasources.open(DEFAULT, NOBODY)
        intake = Intake(
            store.learned, DEFAULT, database, definitions, author=given.author, trust=given.trust
        )
        is_complete = [await _pairs(path, intake) for path in given.pairs]
        is_complete += [await _ddl(path, store) for path in given.ddl]
        is_complete += [
            await _prose(path, name, store) for each in given.docs for path, name in _texts(each)
        ]
    finally:
        datasources.close()
        await store.aclose()

    if all(is_complete):
        return 0

    return 1


async def _pairs(path: Path, intake: Intake) -> bool:
    outcomes = await intake.take(_read_file(path))
    for outcome in outcomes:
        if outcome.status not in _TAKEN:
            _say(f"{path}:{outcome.line}: {_outcome_text(outcome)}")

    taken = {status: sum(outcome.status == status for outcome in outcomes) for status in _TAKEN}
    left = len(outcomes) - sum(taken.values())
    _say(f"{path}: {taken['added']} added, {taken['known']} known already, {left} not taken")
    return not left


def _outcome_text(outcome: ImportOutcome) -> str:
    reason = _FULL
    if outcome.error is not None:
        reason = outcome.error.text.en

    return f"{outcome.status}: {reason}"


async def _ddl(path: Path, store: Store) -> bool:
    documents, unread = documents_of_ddl(DEFAULT, path.name, _read_file(path))
    for statement in unread:
        _say(f"{path}:{statement.line}: invalid: {statement.error.text.en}")

    return await _kept(path, path.name, documents, store) and not unread


async def _prose(path: Path, name: str, store: Store) -> bool:
    return await _kept(path, name, documents_of_text(DEFAULT, name, _read_file(path)), store)


async def _kept(path: Path, name: str, documents: list[Document], store: Store) -> bool:
    """Replace the documents that were loaded from the file before; tell whether all are kept."""
    outcomes = await store.learned.replace_documents(DEFAULT, name, documents)
    is_full = "full" in outcomes.values()
    if is_full:
        _say(f"{path}: full: {_FULL}")
    else:
        _say(f"{path}: {len(documents)} documents")

    return not is_full


def _texts(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the file, or all texts in the folder, with the names that their documents go by."""
    if not path.is_dir():
        yield path, path.name
        return

    for each in sorted(path.rglob("*")):
        if each.suffix.lower() in _PROSE and each.is_file():
            yield each, str(each.relative_to(path))


def _read_file(path: Path) -> str:
    size = path.stat().st_size
    if size > _MAX_BYTES:
        raise UnusableFile(f"{path} is too large: {size} bytes, at most {_MAX_BYTES}.")

    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise UnusableFile(f"{path} is not UTF-8.") from exc


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
