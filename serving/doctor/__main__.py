"""`python -m serving.doctor`: looks the installation over, and says what is wrong and what to do.

Settings come from the environment and `.env`, as for the service.
"""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dotenv import dotenv_values

from common.check_report import add_report_options, report, worst
from serving.doctor.examination import examine


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if all is well, 1 with warnings, 2 with failures."""
    logging.basicConfig(handlers=[logging.NullHandler()])
    parser = argparse.ArgumentParser(
        prog="python -m serving.doctor", description="what is wrong with this installation"
    )
    parser.add_argument("--no-model", action="store_true", help="send nothing to the model")
    add_report_options(parser)
    given = parser.parse_args(arguments)
    written = {name: value or "" for name, value in dotenv_values(Path(".env")).items()}
    findings = examine({**written, **os.environ}, written, with_model=not given.no_model)
    sys.stdout.write(report(findings, given.lang, as_json=given.json))
    return worst(findings)


if __name__ == "__main__":
    sys.exit(main())
