"""How each step of the graph is shown: names, icons and details, in both languages."""

from collections.abc import Callable, Mapping

from agent.flows.etl.draft_answer import shown_tests
from agent.flows.etl.state import EtlUpdate
from agent.flows.flow import StepDescription, StepLabel
from common.text import Text

_DONE = Text("完成", "Done")
_WORKING = Text("处理中", "Working")


def _known(update: EtlUpdate) -> StepDescription:
    names = ", ".join(update["knowledge"]["tables"])
    if not names:
        return StepDescription(Text("没有识别到表", "No table is known yet"), _DONE)

    return StepDescription(Text(f"涉及的表: {names}", f"Tables: {names}"), _DONE)


def _analysed(update: EtlUpdate) -> StepDescription:
    analysis = update.get("analysis", {})
    if "status" in update or not analysis:
        return StepDescription(Text("请求无法继续", "The request ends here"), _DONE)

    count = len(analysis["ambiguities"])
    if count:
        noun = "thing" if count == 1 else "things"
        return StepDescription(Text(f"{count} 处需要确认", f"{count} {noun} to decide"), _DONE)

    steps = len(analysis["intent"]["operations"])
    operations = "operation" if steps == 1 else "operations"
    return StepDescription(
        Text(f"{steps} 个操作，没有歧义", f"{steps} {operations}, nothing is open"), _DONE
    )


def _clarified(update: EtlUpdate) -> StepDescription:
    answers = ", ".join(str(clarification["answer"]) for clarification in update["clarifications"])
    return StepDescription(Text(f"已确认: {answers}", f"Decided: {answers}"), _DONE)


def _planned(update: EtlUpdate) -> StepDescription:
    names = ", ".join(node["name"] for node in update["plan"]["nodes"])
    return StepDescription(Text(f"模型: {names}", f"Models: {names}"), _DONE)


def _reviewed(update: EtlUpdate) -> StepDescription:
    issues = update["review"]["issues"]
    codes = ", ".join(dict.fromkeys(issue["code"] for issue in issues))
    if not codes:
        return StepDescription(Text("评审通过，没有问题", "Passed; nothing was found"), _DONE)

    verdict = update["review"]["verdict"]
    outcome = Text("通过", "passed") if verdict == "pass" else Text("未通过", "failed")
    return StepDescription(
        Text(f"评审{outcome.zh}: {codes}", f"The plan {outcome.en}: {codes}"), _DONE
    )


def _developed(update: EtlUpdate) -> StepDescription:
    count = len(update["code"])
    models = "model" if count == 1 else "models"
    return StepDescription(
        Text(f"已编写 {count} 个模型的 SQL", f"The SQL of {count} {models} is written"), _DONE
    )


def _tested(update: EtlUpdate) -> StepDescription:
    if update["tests"]["status"] == "not_run":
        return StepDescription(Text("没有构建和测试", "Neither built nor tested"), _DONE)

    counts = shown_tests(update["tests"])
    return StepDescription(
        Text(
            f"{counts['pass']} 项测试通过，{counts['fail']} 项失败",
            f"{counts['pass']} tests pass, {counts['fail']} fail",
        ),
        _DONE,
    )


def _rated(update: EtlUpdate) -> StepDescription:
    rating = update["feedback"]["rating"]
    return StepDescription(Text(f"评价: {rating}", f"Rating: {rating}"), _DONE)


def _learnt(update: EtlUpdate) -> StepDescription:
    learned = update["learned"]
    if learned["example"] is not None:
        return StepDescription(Text("已保存为参考草稿", "Kept as a reference"), _DONE)
    if learned["lesson"] is not None:
        return StepDescription(Text("已记录教训", "A lesson is kept"), _DONE)

    return StepDescription(Text("没有可学习的内容", "Nothing was learnt"), _DONE)


def _plain(_update: EtlUpdate) -> StepDescription:
    return StepDescription(_DONE, _DONE)


def _has_failed_review(update: EtlUpdate) -> bool:
    return str(update["review"]["verdict"]) == "fail"


def _has_failed_tests(update: EtlUpdate) -> bool:
    return str(update["tests"]["status"]) == "failed"


def _never(_update: EtlUpdate) -> bool:
    return False


def _label(
    name: Text,
    icon: str,
    steps: tuple[str, str],
    describe: Callable[[EtlUpdate], StepDescription] = _plain,
    has_failed: Callable[[EtlUpdate], bool] = _never,
) -> StepLabel:
    running, done = steps
    return StepLabel(
        name, icon, running, done, StepDescription(name, _WORKING), describe, has_failed
    )


LABELS: Mapping[str, StepLabel] = {
    "knowledge_agent": _label(
        Text("收集知识", "Collecting knowledge"), "📚", ("knowledge", "knowledge_done"), _known
    ),
    "analyst_agent": _label(
        Text("分析需求", "Analysing the request"), "🔍", ("analysis", "analysis_done"), _analysed
    ),
    "clarify": _label(
        Text("确认需求", "Asking what is open"), "❓", ("clarify", "clarify_done"), _clarified
    ),
    "architect_agent": _label(
        Text("设计模型", "Designing the models"), "📐", ("architecture", "plan_done"), _planned
    ),
    "reviewer_agent": _label(
        Text("评审设计", "Reviewing the plan"),
        "🧐",
        ("review", "review_done"),
        _reviewed,
        _has_failed_review,
    ),
    "developer_agent": _label(
        Text("编写 SQL", "Writing the SQL"), "🔧", ("development", "code_done"), _developed
    ),
    "tester_agent": _label(
        Text("构建与测试", "Building and testing"),
        "🧪",
        ("testing", "tests_done"),
        _tested,
        _has_failed_tests,
    ),
    "feedback_handler": _label(
        Text("等待评价", "Asking for a rating"), "💬", ("feedback", "feedback_done"), _rated
    ),
    "learning_handler": _label(
        Text("记录经验", "Keeping what was learnt"), "🧠", ("learning", "learning_done"), _learnt
    ),
    "finalize": _label(
        Text("整理结果", "Putting the result together"), "📝", ("finalize", "completed")
    ),
}
