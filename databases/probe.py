"""`python -m databases.probe URL`: says what the server of a database can do for Citu."""

import argparse
import os
import sys
from collections.abc import Sequence

from databases.source import Unreachable, is_address, probe


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 when the database can't be used."""
    parser = argparse.ArgumentParser(prog="python -m databases.probe", description=__doc__)
    parser.add_argument("url", nargs="?", default=os.environ.get("DATABASE_URL", ""))
    url = parser.parse_args(arguments).url
    if not url or not is_address(url):
        parser.error("give a URL such as postgresql://user:password@localhost:5432/database")
    try:
        found = probe(url, "The URL")
    except Unreachable as error:
        sys.stderr.write(f"{error}\n")
        return 1
    engine = found.engine
    extends = f" in PostgreSQL {engine.extends}" if engine.extends else ""
    sys.stdout.write(f"{engine.name} {engine.version or 'of an unknown version'}{extends}\n")
    sys.stdout.write("All that must hold holds.\n")
    for notice in found.notices:
        sys.stdout.write(f"{notice.en}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
