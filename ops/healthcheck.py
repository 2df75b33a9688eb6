"""Exits 0 if the service of this container is alive; for the image's HEALTHCHECK."""

import os
import sys
from urllib.request import urlopen

_TIMEOUT_S = 4


def main() -> int:
    """Ask `/health` on this machine, and return the exit code."""
    url = f"http://127.0.0.1:{os.environ.get('PORT', '8084')}/health"
    try:
        with urlopen(url, timeout=_TIMEOUT_S):  # noqa: S310 - its scheme stands above
            return 0
    except OSError as error:
        sys.stderr.write(f"{url} doesn't answer: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
