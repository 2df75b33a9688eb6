/** Shows one question and its answer. */

import { answerText } from "./answer_text.js";
import { cardList } from "./cards.js";
import { element, glyph } from "./dom.js";
import { fileButton } from "./downloads.js";
import { failureBox, isRefusal, stoppedBox } from "./failure.js";
import { feedback } from "./feedback.js";
import { questionHead } from "./question_head.js";
import { resultView } from "./result_view.js";
import { rowCount } from "./row_count.js";
import { runDetails } from "./run_details.js";
import { sqlBlock } from "./sql_block.js";
import { Steps } from "./steps.js";
import { suggestions } from "./suggestions.js";
import { label } from "./texts.js";
import { UserQuestion } from "./user_question.js";

/** Shows envelopes as `Asking` yields them. `element.dataset.state` is running, waiting, done, failed or stopped. */
export class Turn {
  #steps = new Steps();
  #answer = element("div", { class: "answer", "aria-live": "polite", "aria-busy": "true" });
  #outcome = element("div", { class: "outcome" });
  #sql = element("div", { class: "sql-place" });
  #tokens = document.createTextNode("");
  #startedAt = performance.now();
  #asked = element("div", { class: "asked-place", "aria-live": "polite" });
  #open = null; // the question that waits for the reader
  #questionText;
  #onRetry;
  #onAnswer;
  #onAsk;
  #onRunSql;
  #show = {
    progress: (envelope) => this.#progress(envelope.data),
    tool: (envelope) => this.#steps.showTool(envelope.data),
    result: (envelope) => this.#steps.showResult(envelope.data),
    token: (envelope) => this.#token(envelope.data.text),
    question: (envelope) => this.#question(envelope.data),
    completed: (envelope) => this.#completed(envelope.data),
    error: (envelope) => this.#error(envelope),
    reconnecting: () => this.#steps.say("turn_reconnecting"),
  };

  /** `onAsk(question)` asks one of those that the server offers; `onRunSql` as `sqlBlock` has it. */
  constructor(question, { onRetry, onAnswer, onAsk, onRunSql }) {
    this.#questionText = question;
    this.#onRetry = onRetry;
    this.#onAsk = onAsk;
    this.#onRunSql = onRunSql;
    this.#onAnswer = onAnswer;
    this.element = element(
      "article",
      { class: "turn", "data-state": "running" },
      ...questionHead(question),
      this.#steps.element,
      this.#asked,
      this.#answer,
      this.#outcome,
      this.#sql,
    );
    this.#steps.say("turn_running"); // before the server has said anything
  }

  /** Shows one envelope; ignores unknown types, which are for newer pages. */
  show(envelope) {
    if (envelope.data.run_id) this.element.dataset.run = envelope.data.run_id;
    if (this.#open) this.#goOn();
    this.#show[envelope.data.type]?.(envelope);
  }

  /** Folds the steps, to make room for the next question. */
  collapse() {
    this.#steps.collapse();
  }

  #progress(data) {
    this.#steps.show(data);
    const sql = data.state_summary?.sql;
    if (sql) this.#showSql(sql, "sql");
  }

  #question(data) {
    this.element.dataset.state = "waiting";
    this.#steps.wait();
    this.#open = new UserQuestion(data, this.#onAnswer);
    if (data.evidence) this.#asked.append(draftPlace(data));
    this.#asked.append(this.#open.element);
  }

  #goOn() {
    this.#open.close();
    this.#open = null;
    this.element.dataset.state = "running";
  }

  #token(text) {
    if (!this.#tokens.isConnected) this.#answer.append(element("p", { class: "answer-text" }, this.#tokens));
    this.#steps.say("turn_running");
    this.#tokens.appendData(text);
  }

  #completed(data) {
    this.#end("done", data.timings_ms?.total);
    this.#steps.collapse();
    const notes = [...(data.warnings ?? [])];
    this.#answer.replaceChildren(...answerParts(data));
    this.#outcome.replaceChildren(...this.#offers(data, ["choices", "rewrites"]), ...notesList(notes, data.sql_repair_applied));
    if (data.response_type === "ETL") {
      this.#asked.querySelector(".draft-place")?.remove(); // it is shown below
      this.#outcome.append(draftPlace(data));
    }
    if (data.query_result) {
      const { chart, run_id: runId, conversation_id: conversationId } = data;
      this.#outcome.append(resultView(data.query_result, {
        chart,
        runId,
        conversationId,
        question: this.#questionText,
        onAsk: (question) => this.#askForSome(question),
        count: () => rowCount(data.sql, data.database?.name),
      }));
    }
    this.#outcome.append(...cardList(data.cards));
    if (data.sql) this.#showSql(data.sql, "sql", data.database?.name);
    else this.#sql.replaceChildren();
    if (data.exports?.length) this.element.append(offeredFiles(data, this.#questionText));
    this.element.append(...this.#offers(data, ["follow_ups"]));
    if (data.run_id && data.response_type !== "ETL") this.element.append(feedback(data));
    this.element.append(runDetails(data));
  }

  /** What is said goes on from the latest answer, so only its rows can be asked for. */
  #askForSome(question) {
    if (this.element.nextElementSibling === null) this.#onAsk(question);
  }

  #offers(data, kinds) {
    return kinds.flatMap((kind) => suggestions(kind, data[kind], this.#onAsk));
  }

  #error(envelope) {
    const isStopped = ["stopped", "cancelled"].includes(envelope.data.error_type);
    const retry = () => this.#onRetry(envelope.data.error_type);
    this.#end(isStopped ? "stopped" : "failed");
    this.#outcome.replaceChildren(
      isStopped ? stoppedBox(envelope.data, retry) : failureBox(envelope, retry),
      ...this.#offers(envelope.data, ["choices", "rewrites", "follow_ups"]),
    );
    if (isRefusal(envelope)) this.#steps.collapse(); // it says the same
    const sql = envelope.data.state_summary?.sql;
    if (sql) this.#showSql(sql, "sql_refused", envelope.data.database?.name);
  }

  /** Ends the turn. Pass the server's time if known, because the page may have followed only a part of the run. */
  #end(state, milliseconds = performance.now() - this.#startedAt) {
    this.element.dataset.state = state;
    this.#answer.setAttribute("aria-busy", "false");
    this.#steps.end(state, milliseconds);
  }

  #showSql(sql, title, database) {
    const shown = [title, database, sql].join("\n");
    if (this.#sql.dataset.shown === shown) return;
    this.#sql.dataset.shown = shown;
    this.#sql.replaceChildren(sqlBlock(sql, title, { database, onRun: this.#onRunSql }));
  }
}

/** A drafted transformation, which is shown by what is loaded for it. */
function draftPlace(data) {
  const place = element("div", { class: "draft-place" });
  import("./draft_view.js").then(
    ({ draftView }) => place.append(draftView(data)),
    () => place.append(label("unreachable_text", {}, "p")),
  );
  return place;
}

/** The files that a tool agent offers. */
function offeredFiles({ exports: files, run_id: runId, conversation_id: conversationId }, question) {
  const buttons = files.map(({ format, call_id: callId }) => fileButton(format, runId, { conversationId, callId, question }));
  return element("section", { class: "files" }, label("files", {}, "h3"), element("div", { class: "result-tools" }, ...buttons));
}

function answerParts(data) {
  const parts = [data.response, data.summary].filter((text) => typeof text === "string" && text !== "");
  const nodes = [...new Set(parts)].flatMap(answerText);
  if (data.sql_generation_failed) nodes.forEach((node) => node.classList.add("prompt"));
  return nodes;
}

function notesList(warnings, isRepaired) {
  const items = warnings.map((warning) => element("li", {}, glyph("warning"), element("span", {}, warning)));
  if (isRepaired) items.push(element("li", {}, glyph("warning"), label("repaired")));
  return items.length ? [element("ul", { class: "notes" }, ...items)] : [];
}
