"""Asks one question after another in one conversation."""

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from api.given_answers import answer_in
from terminal.service_connection import CannotAsk, Event, Events, ServiceConnection
from terminal.shown_answer import show_answer

_FORMATS = {".csv": "csv", ".json": "json", ".xlsx": "xlsx", ".png": "png"}


@dataclass
class TerminalConversation:
    """A conversation on a terminal.

    Attributes:
        options: fields of every request: `agent`, `database`, `lang`.
        as_json: whether answers are printed as JSON, for programs.
    """

    connection: ServiceConnection
    console: Console
    notes: Console
    options: Mapping[str, str] = field(default_factory=dict)
    conversation_id: str | None = None
    as_json: bool = False
    with_sql: bool = True
    run_id: str | None = None
    _open_question: Event | None = None

    def ask(self, message: str) -> bool:
        """Ask, or answer what the run before has asked; show the steps and the answer.

        Returns whether there was an answer, or a question back.
        """
        last: Event = {}
        with self.notes.status("…") as status, closing(self._events(message)) as events:
            for event in events:
                if event["type"] == "progress":
                    status.update(_progress_text(event))

                last = event

        self.conversation_id = last.get("conversation_id") or self.conversation_id
        self.run_id = last.get("run_id") or self.run_id
        self._open_question = last if last.get("type") == "question" else None
        return self._show(last)

    def begin_anew(self) -> None:
        """Forget conversation and run, so that the next line begins another conversation."""
        self.conversation_id = self.run_id = self._open_question = None

    def _events(self, message: str) -> Events:
        question = self._open_question
        if question is not None:
            answer = {
                "interrupt_id": question["interrupt_id"],
                "answer": answer_in(question, message),
            }
            return self.connection.answer(question["run_id"], answer)

        body: dict[str, Any] = {"question": message, **self.options, "stream_tokens": False}
        if self.conversation_id is not None:
            body["conversation_id"] = self.conversation_id

        return self.connection.ask(body)

    def _show(self, last: Event) -> bool:
        if self.as_json:
            self.console.out(json.dumps(last, ensure_ascii=False), highlight=False)
        elif last.get("type") == "completed":
            show_answer(self.console, last, with_sql=self.with_sql)
        elif last.get("type") == "question":
            self._show_question(last)
        else:
            message = last.get("error") or "The connection ended before the answer."
            self.notes.print(str(message), style="red", markup=False)

        return last.get("type") in ("completed", "question")

    def _show_question(self, question: Event) -> None:
        self.console.print(str(question["prompt"]), markup=False)
        for choice in question.get("choices") or ():
            self.console.print(f"  › {choice}", markup=False)

    def export(self, path: Path) -> None:
        """Write the rows of the latest answer into a file, whose name ends in its format.

        Raises:
            CannotAsk: there is no answer with rows, or no such format.
        """
        file_format = _FORMATS.get(path.suffix.lower())
        if file_format is None:
            raise CannotAsk(f"The file's name must end in {', '.join(_FORMATS)}.")
        if self.run_id is None:
            raise CannotAsk("There is no answer yet.")

        query = {"format": file_format}
        if self.conversation_id is not None:
            query["conversation_id"] = self.conversation_id

        with closing(self.connection.export(self.run_id, query)) as pieces:
            first = next(pieces, b"")  # what is refused leaves no file
            with path.open("wb") as file:
                file.write(first)
                file.writelines(pieces)

        self.notes.print(f"{path}", style="dim", markup=False)


def _progress_text(event: Event) -> str:
    details = event.get("sub_status") or event.get("details") or ""
    return f"{event['display_name']} {details}".strip()


def converse(conversation: TerminalConversation, read: Callable[[str], str]) -> None:
    """Ask what the user writes, line by line, until the input ends.

    `/export FILE` writes the latest rows, `/new` begins another conversation, `/quit` ends.
    """
    while True:
        try:
            line = read("? ").strip()
        except EOFError:
            return

        command, _, rest = line.partition(" ")
        if command in ("/quit", "/exit"):
            return

        try:
            if command == "/new":
                conversation.begin_anew()
            elif command == "/export":
                conversation.export(Path(rest.strip()))
            elif line:
                conversation.ask(line)
        except CannotAsk as error:
            conversation.notes.print(str(error), style="red", markup=False)
        except KeyboardInterrupt:
            conversation.notes.print("Stopped.", style="dim")
