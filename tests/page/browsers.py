"""Which browser tests use, and how it is started."""

import os
import shutil

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def browser_path() -> str | None:
    """An installed Chromium; none is downloaded. The one without windows takes half of the other's
    time.
    """
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def flags() -> list[str]:
    """Its command line; root may not use the sandbox."""
    return [
        "--disable-gpu",
        "--disable-background-networking",
        "--in-process-gpu",
        "--renderer-process-limit=1",  # a page of its own process takes a quarter longer
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
    ]
