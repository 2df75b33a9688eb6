"""Says what Vanna's clients show for the events of a run, without any I/O.

progress   the status bar, and a step in the list of tasks
token      a text that is replaced by a longer one
tool       a step in the list of tasks, and a card
result     SQL, table and chart of an intermediate query
question   a text and buttons; the run waits
completed  the text, SQL, table, chart, warnings, buttons to go on with and to rate the answer
error      the status bar and a text; a button to try again where that can help
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from api.external_ids import id_for
from api.given_answers import choice_text
from api.vanna import components
from api.vanna.charts import chart
from api.vanna.chat_requests import feedback_message, reply_message
from api.vanna.components import Button, CardStatus, ChatPart, TaskStatus
from api.vanna.tables import table
from common.text import Lang, Text

# A chunk repeats the whole text so far. Sent only when the text has grown by a sixteenth, all
# chunks of a text together are at most about seventeen times as long as it.
_GROWTH = 16

_WAITING = Text("等待您的回答", "Waiting for your answer")
_FAILED = Text("处理失败", "Failed")
_PLACEHOLDER = Text("请输入问题…", "Ask a question…")
_GOOD = Text("👍 回答正确", "👍 Good answer")
_BAD = Text("👎 回答有误", "👎 Wrong answer")
_AGAIN = Text("重试", "Try again")
_NOTE = Text("⚠️ {}", "⚠️ {}")
_REPLY_BY = Text("请发送：{}", "Send: {}")
_YOUR_ANSWER = Text("<您的回答>", "<your answer>")
_YES = Text("是", "Yes")
_NO = Text("否", "No")
_CARDS: Mapping[str, CardStatus] = {"running": "running", "done": "completed", "failed": "failed"}
_TASKS: Mapping[str, TaskStatus] = {"done": "completed", "failed": "error"}


@dataclass
class EventParts:
    """Makes the parts that clients show for the events of one run, in their order.

    Attributes:
        question: what was asked; sent again by the button to try again. Empty: there is no such
            button.
        prefix: begins the names of all parts; two translations that one client gets have different
            ones.
        is_repeated: whether the client may have some of the parts already, from a connection that
            broke. Then each is removed before it comes, because a client shows a part twice that
            comes twice.
    """

    lang: Lang
    question: str
    prefix: str
    is_repeated: bool = False
    _made: set[str] = field(default_factory=set)
    _texts: int = 0
    _text: str = ""
    _sent: int = 0
    _is_writing: bool = False
    _visits: dict[str, int] = field(default_factory=dict)
    _open_tasks: dict[str, str] = field(default_factory=dict)
    _results: list[tuple[Any, Any, Any]] = field(default_factory=list)

    def parts_of(self, event: Mapping[str, Any]) -> list[ChatPart]:
        """Return the parts for an event's `data`; none for events unknown to this version."""
        make_parts = _PARTS_BY_EVENT.get(str(event.get("type")))
        if make_parts is None:
            return []

        parts = make_parts(self, event)
        if self.is_repeated:
            return _shown_once(parts)

        return list(parts)

    # --------------------------------------------------------------------------
    # steps

    def _progress(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        node = str(event.get("node"))
        title = str(event.get("display_name") or node)
        details = str(event.get("details") or "")
        status = str(event.get("status"))
        if status == "running":
            sub_status = str(event.get("sub_status") or details)
            yield components.status_bar("working", title, sub_status)
            yield from self._begin(node, title, details)
            return

        if node not in self._open_tasks:
            yield from self._begin(node, title, details)

        yield self._end(node, _TASKS.get(status, "completed"), details)

    def _tool(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        call = str(event.get("call_id"))
        status = str(event.get("status"))
        title = str(event.get("display_name") or event.get("name"))
        summary = str(event.get("summary") or "")
        arguments = event.get("arguments")
        if not isinstance(arguments, Mapping):
            arguments = {}

        self._is_writing = False
        if status == "running":
            yield components.status_bar("working", title, summary)
        if call not in self._open_tasks:
            yield from self._begin(call, title, summary)
        if status in _TASKS:
            yield self._end(call, _TASKS[status], summary)

        name = self._name("tool", call)
        yield components.status_card(
            name,
            title,
            _CARDS.get(status, "running"),
            summary,
            arguments,
            self._lifecycle(name),
        )

    def _begin(self, step: str, title: str, detail: str) -> Iterable[ChatPart]:
        if step in self._open_tasks:
            yield self._end(step, "completed", "")

        visit = self._visits.get(step, 0) + 1
        self._visits[step] = visit
        task = self._name("step", step, str(visit))
        self._open_tasks[step] = task
        yield components.new_task(task, title, detail)
        yield components.changed_task(task, "in_progress", detail)

    def _end(self, step: str, status: TaskStatus, detail: str) -> ChatPart:
        task = self._open_tasks.pop(step)
        return components.changed_task(task, status, detail)

    def _end_all(self, status: TaskStatus) -> Iterable[ChatPart]:
        return [self._end(step, status, "") for step in list(self._open_tasks)]

    # --------------------------------------------------------------------------
    # text

    def _token(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        if not self._is_writing:
            self._is_writing = True
            self._text = ""
            self._sent = 0
            self._texts += 1

        self._text += str(event.get("text") or "")
        unsent = len(self._text) - self._sent
        if unsent > self._sent // _GROWTH:
            yield self._text_part()

    def _text_part(self) -> ChatPart:
        self._sent = len(self._text)
        name = self._name("text", str(self._texts))
        return components.text(name, self._text, self._lifecycle(name))

    def _say(self, text: str) -> Iterable[ChatPart]:
        """Yield the text in place of the one that is being written, or a new one."""
        is_written = self._is_writing and text == self._text
        is_sent = is_written and self._sent == len(text)
        if not self._is_writing:
            self._texts += 1

        self._text = text
        self._is_writing = False
        if not is_sent:
            yield self._text_part()

    # --------------------------------------------------------------------------
    # results

    def _result(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        self._is_writing = False
        yield from self._rows(event)

    def _rows(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        sql = event.get("sql")
        rows = event.get("query_result")
        if not isinstance(rows, Mapping):
            rows = {}

        shown = (sql, rows.get("columns"), rows.get("rows"))
        if shown in self._results:  # the last intermediate query is often the answer's
            return

        self._results.append(shown)
        number = str(len(self._results))
        if isinstance(sql, str) and sql:
            yield components.sql_text(self._name("sql", number), sql)
        if rows:
            yield table(self._name("rows", number), rows, self.lang)
            yield from self._chart(number, event.get("chart"), rows)

    def _chart(self, number: str, spec: Any, rows: Mapping[str, Any]) -> Iterable[ChatPart]:
        if not isinstance(spec, Mapping):
            return []

        drawn = chart(self._name("chart", number), spec, rows, self.lang)
        return [drawn] if drawn else []

    # --------------------------------------------------------------------------
    # ends

    def _completed(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        response = str(event.get("response") or "")
        yield from self._end_all("completed")
        if response:
            yield from self._say(response)

        yield from self._rows(event)
        yield from self._cards(event)
        yield from self._warnings(event, response)
        yield from self._offers(event)
        if event.get("sql"):
            yield self._rating(str(event.get("run_id")))

        yield from _idle(self.lang)

    def _cards(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        """Yield the cards of the operator's renderers."""
        for number, card in enumerate(event.get("cards") or (), start=1):
            facts = {fact["label"]: fact["value"] for fact in card["facts"]}
            if card.get("share") is not None:
                facts["%"] = f"{card['share']:.0%}"
            if card.get("link"):
                facts["URL"] = card["link"]

            yield components.status_card(
                self._name("card", str(number)),
                card["title"],
                "failed" if card["tone"] == "bad" else "completed",
                card["text"],
                facts,
                "create",
            )

    def _warnings(self, event: Mapping[str, Any], response: str) -> Iterable[ChatPart]:
        """Yield the warnings that the response doesn't say itself, as one text."""
        notes = []
        for warning in map(str, event.get("warnings") or ()):
            if warning not in response:
                note = _NOTE.to(self.lang).format(warning)
                notes.append(note)

        if notes:
            yield components.text(self._name("warnings"), "\n".join(notes))

    def _offers(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        for kind in ("choices", "rewrites", "follow_ups"):
            offers = []
            for question in map(str, event.get(kind) or ()):
                if question.strip():
                    offers.append(Button(question, question))

            if offers:
                yield components.buttons(self._name(kind), offers)

    def _rating(self, run_id: str) -> ChatPart:
        good = Button(_GOOD.to(self.lang), feedback_message(run_id, is_good=True), "ghost")
        bad = Button(_BAD.to(self.lang), feedback_message(run_id, is_good=False), "ghost")
        return components.buttons(self._name("feedback"), [good, bad], stacked=False)

    def _question(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        run_id = str(event.get("run_id"))
        interrupt_id = str(event.get("interrupt_id"))
        buttons = []
        for label, answer in self._answers(event):
            message = reply_message(run_id, interrupt_id, answer)
            buttons.append(Button(label, message))

        prompt = str(event.get("prompt") or "")
        if not buttons:
            example = reply_message(run_id, interrupt_id, _YOUR_ANSWER.to(self.lang))
            prompt += "\n" + _REPLY_BY.to(self.lang).format(example)

        yield from self._end_all("completed")
        yield from self._say(prompt)
        if buttons:
            yield components.buttons(self._name("answers", interrupt_id), buttons)

        yield from _idle(self.lang, _WAITING.to(self.lang))

    def _answers(self, event: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return labels and texts of the possible answers; empty where any text may be one."""
        if event.get("choices"):
            texts = map(choice_text, event["choices"])
            return [(text, text) for text in texts if text]

        schema = event.get("schema")
        if isinstance(schema, Mapping) and schema.get("type") == "boolean":
            return [(_YES.to(self.lang), "true"), (_NO.to(self.lang), "false")]

        return []

    def _error(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        message = str(event.get("error") or "")
        self._is_writing = False  # what is written so far stays
        yield from self._end_all("error")
        yield components.text(self._name("error"), f"❌ {message}")
        if event.get("retryable") and self.question:
            again = Button(_AGAIN.to(self.lang), self.question, "primary")
            yield components.buttons(self._name("again"), [again])

        yield components.status_bar("error", _FAILED.to(self.lang), message)
        yield components.open_input(_PLACEHOLDER.to(self.lang))

    # --------------------------------------------------------------------------
    # names

    def _name(self, *words: str) -> str:
        # Models make up the ids of calls.
        ids = map(id_for, words)
        return "-".join((self.prefix, *ids))

    def _lifecycle(self, name: str) -> components.Lifecycle:
        if name in self._made:
            return "replace"

        self._made.add(name)
        return "create"


_PARTS_BY_EVENT: Mapping[str, Callable[[EventParts, Mapping[str, Any]], Iterable[ChatPart]]] = {
    "progress": EventParts._progress,
    "token": EventParts._token,
    "tool": EventParts._tool,
    "result": EventParts._result,
    "question": EventParts._question,
    "completed": EventParts._completed,
    "error": EventParts._error,
}


def said_parts(prefix: str, paragraphs: Iterable[str], lang: Lang) -> list[ChatPart]:
    """Return an answer that no run gives: texts, and the client may ask again."""
    parts = []
    for number, paragraph in enumerate(paragraphs):
        part = components.text(f"{prefix}-{number}", paragraph)
        parts.append(part)

    return [*parts, *_idle(lang)]


def greeting_parts(
    prefix: str, greeting: str, examples: Iterable[str], lang: Lang
) -> list[ChatPart]:
    """Return the beginning of a conversation, with questions to ask."""
    parts = [components.text(f"{prefix}-hello", greeting)]
    offers = [Button(example, example) for example in examples]
    if offers:
        parts.append(components.buttons(f"{prefix}-examples", offers))

    return [*parts, *_idle(lang)]


def _idle(lang: Lang, message: str = "") -> list[ChatPart]:
    """Return the parts by which clients wait for the user to write."""
    return [components.status_bar("idle", message), components.open_input(_PLACEHOLDER.to(lang))]


def _shown_once(parts: Iterable[ChatPart]) -> list[ChatPart]:
    """Return the parts for a client that may have them: each is taken away before it comes."""
    shown = []
    for part in parts:
        if part.data.get("operation") == "add_task":
            continue  # the client can't take it away, and would list it twice
        if part.lifecycle == "create":
            shown.append(components.removal(part.name))

        shown.append(part)

    return shown
