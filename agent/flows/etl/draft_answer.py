"""What is said of a draft: in words, in numbers, and as the body of the answer."""

from typing import Any

from agent.flows.etl.etl_texts import (
    ASSUMED,
    ASSUMED_OF,
    BUILT,
    GRAIN,
    MUTANTS,
    SAMPLED,
    SEPARATOR,
    STATUS,
    SURVIVORS,
    TESTS,
    TESTS_FAILED,
)
from agent.flows.etl.state import EtlState, Json
from common.text import Lang
from common.values import Usage
from etl.rendering.assumption_figures import figures_of
from etl.schemas.requirement import Assumption

_FAILING = 5  # tests that the response names
_STOPS = "。."


def body_of(state: EtlState, preview: Json | None) -> Json:
    """Return the body of the answer, without ids and times."""
    analysis = state.get("analysis", {})
    return {
        "response": response_of(state),
        "response_type": "ETL",
        "status": state["status"],
        "intent": analysis.get("intent"),
        "plan": state.get("plan"),
        "review": state.get("review"),
        "evidence": state.get("tests"),
        "assumptions": analysis.get("assumptions", []),
        "questions": analysis.get("ambiguities", []),
        "impossible": analysis.get("impossible", []),
        "clarifications": state.get("clarifications", []),
        "preview": preview,
        "artefact": state.get("artefact"),
        "generation_method": _method(state),
        "feedback": state.get("feedback"),
        "learned": state.get("learned"),
        "usage": state.get("usage", dict(vars(Usage()))),
    }


def _method(state: EtlState) -> str:
    """Return who made what counts: the rules, a model, or both; sources are the rules' anyhow."""
    nodes = state.get("plan", {}).get("nodes", [])
    layers = {node["name"]: node["layer"] for node in nodes}
    methods = set()
    for code in state.get("code", []):
        if layers[code["node"]] != "ODS":
            methods.add(code["method"])

    methods.discard("user")
    analysis = state.get("analysis", {})
    if "llm" in (state.get("plan_method"), analysis.get("method")):
        methods.add("llm")
    if len(methods) > 1:
        return "mixed"

    return "llm" if "llm" in methods else "rules"


def response_of(state: EtlState) -> str:
    """Return the answer in a few sentences."""
    lang = state["lang"]
    sentences = [STATUS[state["status"]].to(lang)]
    if state["status"] == "needs_input":
        sentences += [ambiguity["prompt"] for ambiguity in state["analysis"]["ambiguities"]]
    elif state["status"] == "not_possible":
        sentences += [one["text"] for one in state["analysis"]["impossible"]]
    elif state["status"] == "failed" and "tests" not in state:
        sentences += [error["message"] for error in _errors(state)]

    if "tests" in state:
        sentences.append(summary_of(state))

    return SEPARATOR.to(lang).join(sentences)


def _errors(state: EtlState) -> list[Json]:
    issues: list[Json] = state.get("review", {}).get("issues", [])
    return [issue for issue in issues if issue["severity"] == "error"]


def summary_of(state: EtlState) -> str:
    """Return what was built, at which grain, how many rows, and what its tests say."""
    lang = state["lang"]
    sentences = [*_build_sentences(state, lang), *_test_sentences(state["tests"], lang)]
    assumptions = state.get("analysis", {}).get("assumptions", [])
    if assumptions:
        texts = SEPARATOR.to(lang).join(
            _assumption_text(assumption, lang) for assumption in assumptions
        )
        sentences.append(ASSUMED.to(lang).format(texts=texts))

    return SEPARATOR.to(lang).join(sentences)


def _assumption_text(assumption: Json, lang: Lang) -> str:
    text = str(assumption["text"])
    figures = figures_of(Assumption.model_validate(assumption), lang)
    if figures:
        return ASSUMED_OF.to(lang).format(text=text.rstrip(_STOPS), figures=figures)

    return text


def _build_sentences(state: EtlState, lang: Lang) -> list[str]:
    plan, tests = state["plan"], state["tests"]
    target = next(node for node in plan["nodes"] if node["name"] == plan["target"])
    sentences: list[str] = []
    rows = {model["node"]: model["rows"] for model in tests["models"]}
    if target["name"] in rows:
        counts = {"models": len(plan["nodes"]), "rows": rows[target["name"]]}
        sentences.append(BUILT.to(lang).format(target=_relation(state), **counts))

    if target["grain"]:
        sentences.append(GRAIN.to(lang).format(grain=", ".join(target["grain"])))

    sampled = (tests.get("scratch") or {}).get("tables", {})
    cut = [name for name, table in sampled.items() if not table["is_whole"]]
    if cut:
        sentences.append(SAMPLED.to(lang).format(tables=", ".join(cut)))

    return sentences


def _relation(state: EtlState) -> str:
    artefact = state.get("artefact")
    if artefact:
        return str(artefact["target"]["relation"])

    return str(state["plan"]["target"])


def _test_sentences(tests: Json, lang: Lang) -> list[str]:
    counts = shown_tests(tests)
    sentences: list[str] = []
    if counts["pass"]:
        sentences.append(TESTS.to(lang).format(passed=counts["pass"]))

    failing = [test["id"] for test in tests["tests"] if test["status"] == "fail"]
    if failing:
        named = ", ".join(failing[:_FAILING])
        sentences.append(TESTS_FAILED.to(lang).format(failed=len(failing), named=named))

    mutants = tests.get("mutants")
    if mutants and mutants["tried"]:
        sentences.append(MUTANTS.to(lang).format(**mutants))
        if mutants["survivors"]:
            sentences.append(SURVIVORS.to(lang).format(count=len(mutants["survivors"])))

    return sentences


def shown_tests(tests: Json) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped."""
    counts = dict.fromkeys(("pass", "fail", "skipped"), 0)
    for test in tests["tests"]:
        counts[test["status"]] += 1

    return counts


def states_of_nodes(state: EtlState) -> list[dict[str, Any]]:
    """Return the nodes of the plan, each with how far it is."""
    written = {code["node"] for code in state.get("code", [])}
    tests = state.get("tests", {})
    built = {model["node"] for model in tests.get("models", [])}
    failed = {test["node"] for test in tests.get("tests", []) if test["status"] == "fail"}
    stages = (("failed", failed), ("built", built), ("written", written))
    shown = []
    for node in state["plan"]["nodes"]:
        name = node["name"]
        reached = [stage for stage, names in stages if name in names]
        shown.append({"name": name, "state": reached[0] if reached else "planned"})

    return shown
