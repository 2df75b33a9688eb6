"""Translates the events of a run into the chunks of Vanna's chat protocol, without any I/O.

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
from datetime import datetime
from typing import Any

from api.vanna import components
from api.vanna.charts import chart
from api.vanna.chat_requests import choice_text, feedback_message, reply_message
from api.vanna.components import Button, CardStatus, ChatPart, TaskStatus
from api.vanna.plain_names import plain_name
from api.vanna.tables import table
from common import timestamps
from common.envelope import error_data
from common.errors import CituError
from common.text import Lang, Text

Chunk = dict[str, Any]

# A chunk repeats the whole text so far. Sent only when the text has grown by a sixteenth, all
# chunks of a text together are at most about seventeen times as long as it.
_GROWTH = 16

_WAITING = Text("等待您的回答", "Waiting for your answer")
_FAILED = Text("处理失败", "Failed")
_PLACEHOLDER = Text("请输入问题…", "Ask a question…")
_GOOD, _BAD = Text("👍 回答正确", "👍 Good answer"), Text("👎 回答有误", "👎 Wrong answer")
_AGAIN = Text("重试", "Try again")
_NOTE = Text("⚠️ {}", "⚠️ {}")
_REPLY_BY = Text("请发送：{}", "Send: {}")
_YOUR_ANSWER = Text("<您的回答>", "<your answer>")
_YES, _NO = Text("是", "Yes"), Text("否", "No")
_CARDS: Mapping[str, CardStatus] = {"running": "running", "done": "completed", "failed": "failed"}
_ERROR_FIELDS = ("error_type", "error", "retryable", "retry_after_s", "field")
_TASKS: Mapping[str, TaskStatus] = {"done": "completed", "failed": "error"}


@dataclass(frozen=True)
class ChunkEnvelope:
    """The fields that all chunks have that answer one request.

    Attributes:
        conversation_id, request_id: as the client calls them.
        run_id: of the run that the chunks are of; None: there is none.
    """

    conversation_id: str
    request_id: str
    run_id: str | None = None

    def chunk(self, part: ChatPart, moment: str, **more: Any) -> Chunk:
        """Return a chunk; `moment` is ISO 8601, and Vanna's clients skip the keys in `more`."""
        chunk = {
            "rich": part.rich(moment),
            "simple": part.simple(),
            "conversation_id": self.conversation_id,
            "request_id": self.request_id,
            "timestamp": datetime.fromisoformat(moment).timestamp(),
        }
        if self.run_id:
            chunk["run_id"] = self.run_id
        return chunk | more


@dataclass
class Translation:
    """The events of one run, in their order.

    Attributes:
        question: what was asked; sent again by the button to try again. Empty: there is no such
            button.
        prefix: begins the names of all parts; two translations that one client gets have different
            ones.
        moment: time of the chunks until an event says its own; ISO 8601.
        is_repeated: whether the client may have some of the parts already, from a connection that
            broke. Then each is taken away before it comes, because a client shows a part twice that
            comes twice.
    """

    envelope: ChunkEnvelope
    lang: Lang
    question: str
    prefix: str
    moment: str
    is_repeated: bool = False
    _made: set[str] = field(default_factory=set)
    _texts: int = 0
    _text: str = ""
    _sent: int = 0
    _is_writing: bool = False
    _visits: dict[str, int] = field(default_factory=dict)
    _open_tasks: dict[str, str] = field(default_factory=dict)
    _results: list[tuple[Any, Any, Any]] = field(default_factory=list)

    def chunks_of(self, event: Mapping[str, Any]) -> list[Chunk]:
        """Return the chunks for an event's `data`; none for events unknown to this version."""
        moment = event.get("timestamp")
        if isinstance(moment, str):
            self.moment = moment
        translate = _TRANSLATIONS.get(str(event.get("type")))
        if translate is None:
            return []
        parts = list(translate(self, event))
        if self.is_repeated:
            parts = _shown_once(parts)
        chunks = []
        for part in parts:
            is_error_text = event.get("type") == "error" and part.kind == "text"
            more = {"error": _error_fields(event)} if is_error_text else {}
            chunks.append(self.envelope.chunk(part, self.moment, **more))
        return chunks

    # --------------------------------------------------------------------------
    # steps

    def _progress(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        node, title = str(event.get("node")), str(event.get("display_name") or event.get("node"))
        details = str(event.get("details") or "")
        if event.get("status") == "running":
            yield components.status_bar("working", title, str(event.get("sub_status") or details))
            yield from self._begin(node, title, details)
            return
        if node not in self._open_tasks:
            yield from self._begin(node, title, details)
        yield self._end(node, _TASKS.get(str(event.get("status")), "completed"), details)

    def _tool(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        call, status = str(event.get("call_id")), str(event.get("status"))
        title = str(event.get("display_name") or event.get("name"))
        summary = str(event.get("summary") or "")
        self._is_writing = False
        if status == "running":
            yield components.status_bar("working", title, summary)
        if call not in self._open_tasks:
            yield from self._begin(call, title, summary)
        if status in _TASKS:
            yield self._end(call, _TASKS[status], summary)
        name, arguments = self._name("tool", call), event.get("arguments")
        yield components.status_card(
            name,
            title,
            _CARDS.get(status, "running"),
            summary,
            arguments if isinstance(arguments, Mapping) else {},
            self._lifecycle(name),
        )

    def _begin(self, step: str, title: str, detail: str) -> Iterable[ChatPart]:
        if step in self._open_tasks:
            yield self._end(step, "completed", "")
        visit = self._visits[step] = self._visits.get(step, 0) + 1
        task = self._open_tasks[step] = self._name("step", step, str(visit))
        yield components.new_task(task, title, detail)
        yield components.changed_task(task, "in_progress", detail)

    def _end(self, step: str, status: TaskStatus, detail: str) -> ChatPart:
        return components.changed_task(self._open_tasks.pop(step), status, detail)

    def _end_all(self, status: TaskStatus) -> Iterable[ChatPart]:
        return [self._end(step, status, "") for step in list(self._open_tasks)]

    # --------------------------------------------------------------------------
    # text

    def _token(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        piece = str(event.get("text") or "")
        if not self._is_writing:
            self._is_writing, self._text, self._sent = True, "", 0
            self._texts += 1
        self._text += piece
        if len(self._text) - self._sent > self._sent // _GROWTH:
            yield self._written()

    def _written(self) -> ChatPart:
        self._sent = len(self._text)
        name = self._name("text", str(self._texts))
        return components.text(name, self._text, self._lifecycle(name))

    def _say(self, text: str) -> Iterable[ChatPart]:
        """Yield the text in place of the one that is being written, or a new one."""
        is_said = self._is_writing and text == self._text and self._sent == len(text)
        if not self._is_writing:
            self._texts += 1
        self._text, self._is_writing = text, False
        if not is_said:
            yield self._written()

    # --------------------------------------------------------------------------
    # results

    def _result(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        self._is_writing = False
        yield from self._rows(event)

    def _rows(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        sql, result = event.get("sql"), event.get("query_result")
        rows = result if isinstance(result, Mapping) else {}
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
        warnings = map(str, event.get("warnings") or ())
        notes = [_NOTE.to(self.lang).format(one) for one in warnings if one not in response]
        if notes:
            yield components.text(self._name("warnings"), "\n".join(notes))
        yield from self._offers(event)
        if event.get("sql"):
            yield self._rating(str(event.get("run_id")))
        yield from idle(self.lang)

    def _offers(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        for kind in ("choices", "rewrites", "follow_ups"):
            questions = map(str, event.get(kind) or ())
            offers = [Button(question, question) for question in questions if question.strip()]
            if offers:
                yield components.buttons(self._name(kind), offers)

    def _rating(self, run_id: str) -> ChatPart:
        choices = [
            Button(label.to(self.lang), feedback_message(run_id, is_good=label is _GOOD), "ghost")
            for label in (_GOOD, _BAD)
        ]
        return components.buttons(self._name("feedback"), choices, stacked=False)

    def _question(self, event: Mapping[str, Any]) -> Iterable[ChatPart]:
        run_id, interrupt_id = str(event.get("run_id")), str(event.get("interrupt_id"))
        buttons = [
            Button(label, reply_message(run_id, interrupt_id, answer))
            for label, answer in self._answers(event)
        ]
        prompt = str(event.get("prompt") or "")
        if not buttons:
            example = reply_message(run_id, interrupt_id, _YOUR_ANSWER.to(self.lang))
            prompt += "\n" + _REPLY_BY.to(self.lang).format(example)
        yield from self._end_all("completed")
        yield from self._say(prompt)
        if buttons:
            yield components.buttons(self._name("answers", interrupt_id), buttons)
        yield from idle(self.lang, _WAITING.to(self.lang))

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
        said = str(event.get("error") or "")
        self._is_writing = False  # what is written so far stays
        yield from self._end_all("error")
        yield components.text(self._name("error"), f"❌ {said}")
        if event.get("retryable") and self.question:
            again = Button(_AGAIN.to(self.lang), self.question, "primary")
            yield components.buttons(self._name("again"), [again])
        yield components.status_bar("error", _FAILED.to(self.lang), said)
        yield components.open_input(_PLACEHOLDER.to(self.lang))

    # --------------------------------------------------------------------------
    # names

    def _name(self, *words: str) -> str:
        # Models make up the ids of calls.
        return "-".join((self.prefix, *map(plain_name, words)))

    def _lifecycle(self, name: str) -> components.Lifecycle:
        if name in self._made:
            return "replace"
        self._made.add(name)
        return "create"


_TRANSLATIONS: Mapping[str, Callable[[Translation, Mapping[str, Any]], Iterable[ChatPart]]] = {
    "progress": Translation._progress,
    "token": Translation._token,
    "tool": Translation._tool,
    "result": Translation._result,
    "question": Translation._question,
    "completed": Translation._completed,
    "error": Translation._error,
}


def said_chunks(
    envelope: ChunkEnvelope, prefix: str, paragraphs: Iterable[str], lang: Lang
) -> list[Chunk]:
    """Return an answer that no run gives: texts, and the client may ask again."""
    parts = [components.text(f"{prefix}-{number}", said) for number, said in enumerate(paragraphs)]
    return _now(envelope, [*parts, *idle(lang)])


def greeting_chunks(
    envelope: ChunkEnvelope, prefix: str, greeting: str, examples: Iterable[str], lang: Lang
) -> list[Chunk]:
    """Return the beginning of a conversation, with questions to ask."""
    offers = [Button(example, example) for example in examples]
    group = [components.buttons(f"{prefix}-examples", offers)] if offers else []
    return _now(envelope, [components.text(f"{prefix}-hello", greeting), *group, *idle(lang)])


def error_chunks(error: CituError, envelope: ChunkEnvelope, prefix: str, lang: Lang) -> list[Chunk]:
    """Return an error outside of any run, as one of a run is shown."""
    data = {"type": "error", **error_data(error, lang)}
    return Translation(envelope, lang, "", prefix, timestamps.now()).chunks_of(data)


def idle(lang: Lang, message: str = "") -> list[ChatPart]:
    """Return the chunks by which clients wait for the user to write."""
    return [components.status_bar("idle", message), components.open_input(_PLACEHOLDER.to(lang))]


def _now(envelope: ChunkEnvelope, parts: Iterable[ChatPart]) -> list[Chunk]:
    moment = timestamps.now()
    return [envelope.chunk(part, moment) for part in parts]


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


def _error_fields(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that programs can act on."""
    return {name: event[name] for name in _ERROR_FIELDS if name in event}
