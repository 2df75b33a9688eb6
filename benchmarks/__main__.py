"""`python -m benchmarks`: every measurement in one run, as a table of ratios."""

import argparse
import tempfile
from pathlib import Path

from benchmarks import answer_cost
from common.database.source import EmbeddedDemo


def main() -> None:
    """Measures on the embedded demo database and prints what was found."""
    parser = argparse.ArgumentParser(description="Citu's cost per answer beside the bare stack's")
    parser.add_argument("--rounds", type=int, default=10, help="alternating blocks per application (default 10)")
    parser.add_argument("--answers", type=int, default=50, help="answers per block (default 50)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="citu-bench-") as folder:
        Path(folder).chmod(0o755)  # as root, the embedded server runs as another user
        demo = EmbeddedDemo(Path(folder))
        try:
            found = answer_cost.run(demo.start(), Path(folder), rounds=options.rounds, answers=options.answers)
        finally:
            demo.release()
    bare = found["bare stack"]
    print(f"{'':12}{'added ms (median)':>20}{'CPU ms per answer':>20}")
    for name, cost in found.items():
        print(f"{name:12}{cost['ms']:>20.2f}{cost['cpu_ms']:>20.2f}")
    print(f"{'ratio':12}{found['Citu']['ms'] / bare['ms']:>20.2f}{found['Citu']['cpu_ms'] / bare['cpu_ms']:>20.2f}")


if __name__ == "__main__":
    main()
