"""`python -m databases.probe URL`: says what the server of a database can do for Citu."""

import argparse
import os
import sys
from collections.abc import Sequence

from common.check_report import language_of_environment
from common.text import Text
from databases.source import Unreachable, is_address, probe

_UNKNOWN = Text("版本未知", "of an unknown version")
_HOLDS = Text("必须满足的条件都满足。", "All that must hold holds.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 when the database can't be used."""
    parser = argparse.ArgumentParser(prog="python -m databases.probe", description=__doc__)
    parser.add_argument("url", nargs="?", default=os.environ.get("DATABASE_URL", ""))
    url = parser.parse_args(arguments).url
    lang = language_of_environment(os.environ)
    if not url or not is_address(url):
        parser.error("give a URL such as postgresql://user:password@localhost:5432/database")

    try:
        capabilities = probe(url, "The URL")
    except Unreachable as error:
        sys.stderr.write(f"{error.text.to(lang)}\n")
        return 1

    engine = capabilities.engine
    version = engine.version or _UNKNOWN.to(lang)
    extends = f" (PostgreSQL {engine.extends})" if engine.extends else ""
    sys.stdout.write(f"{engine.name} {version}{extends}\n")
    for notice in (_HOLDS, *capabilities.notices):
        sys.stdout.write(f"{notice.to(lang)}\n")

    return 0


if __name__ == "__main__":
    sys.exit(main())
