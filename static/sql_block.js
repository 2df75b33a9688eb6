/** A statement that can be copied, changed and run again. */

import { request, Refusal } from "./api.js";
import { copyButton } from "./copying.js";
import { element, glyph, setTranslatedAttribute } from "./dom.js";
import { failureBox } from "./failure.js";
import { resultView } from "./result_view.js";
import { highlighted } from "./sql_highlight.js";
import { label, language } from "./texts.js";

/**
 * `<div>` with `sql` under the heading of that key. With `runsAgain` it can be run as it is: its rows are of another day.
 * `database` is the name of the one that it is for, where there are several. `onRun(sql, database, place)` has it answered
 * in `place` as a question of the conversation.
 */
export function sqlBlock(sql, title, { runsAgain = false, database, onRun = null } = {}) {
  return new SqlBlock(sql, title, { runsAgain, database, onRun }).element;
}

// Characters that a question may have unless the server says otherwise; longer SQL is run, but not kept.
const LONGEST_ASKED = 2000;

class SqlBlock {
  #sql;
  #database;
  #onRun;
  #code = element("code");
  #shown;
  #edit = textButton("rename", "sql_edit", () => this.#showEditor());
  #editor = null;
  #outcome = element("div", { class: "sql-outcome" });
  #status = element("p", { class: "sql-status", role: "status" });
  #running = 0; // counts runs, so that a late answer to an earlier one is not shown

  constructor(sql, title, { runsAgain, database, onRun }) {
    this.#sql = sql;
    this.#database = database;
    this.#onRun = onRun;
    this.#code.append(...highlighted(sql));
    this.#shown = element("pre", { tabindex: "0" }, this.#code);
    const copy = copyButton("copy", () => this.#sql, () => getSelection().selectAllChildren(this.#code));
    const again = runsAgain ? textButton("retry", "run_again", () => this.#run(this.#sql)) : null;
    const buttons = element("div", { class: "block-tools" }, again, this.#edit, copy);
    const heading = label(title, {}, "h3");
    const where = database ? element("span", { class: "count" }, database) : null;
    const head = element("header", { class: "block-head" }, heading, where, buttons);
    this.element = element("div", {}, element("section", { class: "sql" }, head, this.#shown), this.#status, this.#outcome);
  }

  #showEditor() {
    const field = element("textarea", { class: "code", spellcheck: "false", rows: Math.min(20, this.#sql.split("\n").length + 1) });
    setTranslatedAttribute(field, "aria-label", "sql");
    field.value = this.#sql;
    const run = element("button", { type: "submit", class: "primary" }, glyph("run"), label("sql_run"));
    const cancel = element("button", { type: "button", class: "secondary" }, label("cancel"));
    cancel.addEventListener("click", () => this.#closeEditor());
    this.#editor = element("form", { class: "sql-editor" }, field, element("div", { class: "form-buttons" }, run, cancel));
    this.#editor.addEventListener("submit", (event) => {
      event.preventDefault();
      if (field.value.trim()) this.#run(field.value);
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.#editor.requestSubmit();
      if (event.key !== "Escape" || event.isComposing) return;
      event.stopPropagation(); // it would stop the question that is being answered
      this.#closeEditor();
    });
    this.#shown.replaceWith(this.#editor);
    this.#edit.hidden = true;
    field.focus();
  }

  #closeEditor() {
    this.#editor.replaceWith(this.#shown);
    this.#edit.hidden = false;
    this.#edit.focus();
  }

  async #run(sql) {
    const isAsked = this.#onRun !== null && sql.length <= LONGEST_ASKED;
    if (isAsked) {
      this.#onRun(sql, this.#database, this.#outcome);
      return;
    }
    const run = (this.#running += 1);
    this.#status.replaceChildren(label("sql_running"));
    const outcome = await this.#outcomeOf(sql);
    if (run !== this.#running) return;
    this.#status.replaceChildren(label("sql_done"));
    this.#outcome.replaceChildren(outcome);
  }

  async #outcomeOf(sql) {
    try {
      const { query_result: result, chart } = await request("sql/run", { method: "POST", body: { sql, lang: language(), database: this.#database } });
      return resultView(result, { chart });
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      return failureBox(refusal.envelope, () => this.#run(sql));
    }
  }
}

function textButton(drawing, key, onClick) {
  const button = element("button", { type: "button", class: "quiet" }, glyph(drawing), label(key));
  button.addEventListener("click", onClick);
  return button;
}
