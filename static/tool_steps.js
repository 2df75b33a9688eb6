/** A tool's call among the steps of a question: what it was called with, what came of it, and the rows it found. */

import { element, glyph } from "./dom.js";
import { resultView } from "./result_view.js";
import { highlighted } from "./sql_highlight.js";
import { label } from "./texts.js";

const MARKS = { done: "done", failed: "failed", stopped: "stopped" };

/** Takes the `data` of `tool` events of one call, and of its `result` event. */
export class ToolStep {
  #mark = element("span", { class: "step-mark" });
  #summary = element("span", { class: "step-details" });
  #time = element("span", { class: "step-time" });
  #more = element("div", { class: "tool-more" });

  constructor({ name, display_name: title, arguments: given }) {
    const head = element("div", { class: "step-head" }, element("span", { class: "tool-name" }, title ?? name), this.#mark);
    this.element = element("li", { class: "step tool-step", "data-tool": name }, head, this.#summary, this.#time, this.#more);
    if (Object.keys(given ?? {}).length) this.#more.append(folded("tool_arguments", argumentsList(given)));
  }

  update({ status, ms, summary }) {
    this.#setStatus(status);
    this.#summary.textContent = summary ?? "";
    this.#time.textContent = ms == null ? "" : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`;
  }

  /** Shows a `query_result` of this call, folded. */
  showRows({ query_result: result, chart, sql }) {
    const shown = element("pre", { class: "tool-sql", tabindex: "0" }, element("code", {}, ...highlighted(sql)));
    this.#more.append(folded("tool_rows", shown, resultView(result, { chart })));
  }

  end(status) {
    if (this.element.dataset.status === "running") this.#setStatus(status);
  }

  #setStatus(status) {
    this.element.dataset.status = status;
    const mark = MARKS[status] ? glyph(MARKS[status]) : element("span", { class: "spinner" });
    const text = label(`step_${status}`);
    if (status !== "failed" && status !== "stopped") text.className = "visually-hidden";
    this.#mark.replaceChildren(mark, text);
  }
}

function folded(key, ...parts) {
  return element("details", { class: "tool-fold" }, label(key, {}, "summary"), ...parts);
}

function argumentsList(given) {
  const items = Object.entries(given).flatMap(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return [element("dt", {}, name), element("dd", { dir: "auto" }, text)];
  });
  return element("dl", { class: "tool-arguments" }, ...items);
}
