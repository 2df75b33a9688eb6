"""Questions to the flows with tools, interrupted at random points: no later one pays for it."""

from collections.abc import Callable
from pathlib import Path

from benchmarks.interruptions import KINDS, SETTINGS, Interrupter
from tests.support.live import GAUGES, serving
from tests.support.openai_server import OpenAiServer


def test_the_next_question_is_answered(
    model: OpenAiServer, make_database: Callable[[str], str], tmp_path: Path
) -> None:
    with serving(
        tmp_path / "log", model=model, DATABASE_URL=make_database(GAUGES), **SETTINGS
    ) as citu:
        # Killed workers, which take seconds to replace, are left to `python -m benchmarks
        # interruptions`.
        kinds = {kind: weight for kind, weight in KINDS.items() if kind != "kill"}
        found = Interrupter(citu, model, "gauge", "SELECT n FROM endless", seed=1).run(24, kinds)
    assert found.refused == []
    assert found.unanswered == []
    assert {"cancelled", "llm_unavailable", "left"} <= found.endings.keys()
