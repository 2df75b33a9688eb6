"""`python -m api.keys`: makes, lists and revokes API keys, for running services too."""

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from dotenv import load_dotenv

from api.access.key_file import ApiKey, InvalidKeyRequest, KeyFile, KeysUnreadable
from app_config import ConfigurationError, Settings
from common.actor import Attributes, attributes_of
from common.errors import StoreUnavailable

_HEADINGS = (
    *("id", "user", "groups", "attributes", "acts for others"),
    *("name", "created", "expires", "ends in"),
)


class KeyOutput(NamedTuple):
    """The texts that a command prints on stdout and stderr."""

    out: str
    beside: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments` (default: `sys.argv`).

    A failure is one sentence on stderr and exit code 1.
    """
    logging.basicConfig(
        handlers=[logging.NullHandler()]
    )  # the user of a command reads its one sentence, no log
    options = _parser().parse_args(arguments)
    run: Callable[[KeyFile, argparse.Namespace], KeyOutput] = options.run
    try:
        load_dotenv(Path(".env"))
        settings = Settings.from_env()
        settings.refuse_halves()
        output = _run(settings, lambda keys: run(keys, options), changes=options.changes)
    except (ConfigurationError, InvalidKeyRequest, KeysUnreadable, StoreUnavailable) as error:
        sys.stderr.write(f"{str(error)[:1].upper()}{str(error)[1:].rstrip('.')}.\n")
        return 1

    # Only the key goes to stdout, so that a script can capture it.
    sys.stdout.write(output.out)
    sys.stderr.write(output.beside)
    return 0


def _run(settings: Settings, run: Callable[[KeyFile], KeyOutput], *, changes: bool) -> KeyOutput:
    """Run a command on the keys of all hosts, or on this one's file."""
    if not settings.shared_api_keys:
        return run(KeyFile(settings.api_keys_path))

    # A store takes a second to be imported, which a file does without.
    from api.shared_key_store import fetch_shared_keys, use_shared_keys

    if changes:
        return use_shared_keys(settings, lambda keys: keys.change(run))

    fetch_shared_keys(settings)
    return run(KeyFile(settings.api_keys_path))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m api.keys", description="API keys of the service (API_KEYS_FILE)"
    )
    commands = parser.add_subparsers(required=True, metavar="create | list | revoke")
    create = commands.add_parser("create", help="make a key and print it, once")
    create.add_argument(
        "--user", required=True, metavar="NAME", help="whose conversations and runs it opens"
    )
    create.add_argument(
        "--group", action="append", default=[], metavar="NAME", help="may be given several times"
    )
    create.add_argument(
        "--attribute",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="which row rules may name; may be given several times",
    )
    create.add_argument(
        "--acts-for-others", action="store_true", help="a request's user_id is believed"
    )
    create.add_argument("--name", default="", metavar="TEXT", help="what the key is for")
    create.add_argument(
        "--expires-days", type=float, metavar="N", help="days until it expires; default: never"
    )
    create.set_defaults(run=_create, changes=True)
    commands.add_parser("list", help="show all keys, without the keys themselves").set_defaults(
        run=_list, changes=False
    )
    revoke = commands.add_parser("revoke", help="make a key worthless")
    revoke.add_argument("key_id", metavar="ID")
    revoke.set_defaults(run=_revoke, changes=True)
    return parser


def _create(keys: KeyFile, options: argparse.Namespace) -> KeyOutput:
    text, key = keys.create(
        options.user,
        groups=tuple(dict.fromkeys(options.group)),
        acts_for_others=options.acts_for_others,
        name=options.name,
        expires_in_days=options.expires_days,
        attributes=_attributes(options.attribute),
    )
    hint = (
        f"{key.key_id} for {key.user_id}. Keep the key: it is not stored and will not be shown "
        f"again.\n"
    )
    return KeyOutput(f"{text}\n", hint)


def _attributes(texts: Sequence[str]) -> Attributes:
    values: dict[str, list[str]] = {}
    for text in texts:
        name, is_said, value = text.partition("=")
        if not is_said:
            raise InvalidKeyRequest(f"the attribute {text!r} must be written name=value")

        values.setdefault(name, []).append(value)

    return attributes_of(values)


def _list(keys: KeyFile, options: argparse.Namespace) -> KeyOutput:  # noqa: ARG001 - as the others
    all_keys = keys.all()
    if not all_keys:
        state = "a key is needed all the same" if keys.is_needed() else "no key is needed"
        return KeyOutput(f"No API keys in {keys.path}; {state}.\n")

    rows = [_HEADINGS, *map(_row, all_keys)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(cells).rstrip() + "\n")

    return KeyOutput("".join(lines))


def _row(key: ApiKey) -> tuple[str, ...]:
    expires = "never"
    if key.expires_at is not None:
        expires = f"{key.expires_at[:16]}Z"
    if key.is_expired():
        expires += " (expired)"

    return (
        key.key_id,
        key.user_id,
        ",".join(key.groups) or "-",
        _attributes_text(key.attributes) or "-",
        "yes" if key.acts_for_others else "no",
        key.name or "-",
        key.created_at[:16] + "Z",
        expires,
        f"…{key.ending}",
    )


def _attributes_text(attributes: Attributes) -> str:
    return ",".join(f"{name}={value}" for name, values in attributes for value in values)


def _revoke(keys: KeyFile, options: argparse.Namespace) -> KeyOutput:
    key = keys.revoke(options.key_id)
    return KeyOutput(f"{key.key_id} of {key.user_id} is revoked.\n")


if __name__ == "__main__":
    sys.exit(main())
