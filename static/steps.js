/** The steps of one question, as they happen. */

import { element, glyph } from "./dom.js";
import { ToolStep } from "./tool_steps.js";
import { label, setLabel } from "./texts.js";

// Drawings for the emoji that the server names as icons, because not every system has a font with colour emoji.
const DRAWINGS = {
  "🤔": "think", "🔧": "write", "⚙️": "run", "💭": "chat", "📝": "report", "✅": "done",
  "🔍": "think", "📐": "bar", "🧐": "review", "🧪": "run", "❓": "chat", "💬": "chat",
  "📋": "report", "🛠️": "sliders", "🧭": "think", "🧠": "history", "📚": "table", "💾": "download",
};
const TICK_MS = 100;
const MARKS = { done: "done", waiting: "chat", failed: "failed", stopped: "stopped" };

/** A list that takes the `data` of progress events. */
export class Steps {
  #list = element("ol", { class: "step-list", "aria-live": "polite" });
  #state = element("span", { class: "steps-state" });
  #time = element("span", { class: "steps-time", "aria-hidden": "true" });
  #rows = new Map(); // node → its latest row
  #tools = new Map(); // call id → its step
  #startedAt = performance.now();
  #clock = setInterval(() => this.#tick(), TICK_MS);

  constructor() {
    const summary = element("summary", {}, label("steps", {}, "span"), this.#state, this.#time);
    this.element = element("details", { class: "steps", open: true, hidden: true }, summary, this.#list);
    setLabel(this.#state, "turn_running");
  }

  /** Shows one progress event: a node that starts (again) gets a row, later events of it update that row. */
  show(data) {
    this.say("turn_running");
    this.#time.hidden = false;
    if (data.status === "running" || !this.#rows.has(data.node)) this.#rows.set(data.node, this.#add(data.node));
    this.#rows.get(data.node).update(data);
  }

  /** Shows one tool event: a call gets a step of its own, below the node that makes it. */
  showTool(data) {
    this.say("turn_running");
    if (!this.#tools.has(data.call_id)) {
      const step = new ToolStep(data);
      this.#tools.set(data.call_id, step);
      this.#list.append(step.element);
    }
    this.#tools.get(data.call_id).update(data);
  }

  /** Shows the rows that a call found. */
  showResult(data) {
    this.#tools.get(data.call_id)?.showRows(data);
  }

  /** Shows the text of that key as what happens now. */
  say(key) {
    this.element.hidden = false;
    if (this.#state.dataset.text !== key) setLabel(this.#state, key);
  }

  /** The run waits for the reader: the step that asked is run again after the answer, in a row of its own. */
  wait() {
    this.say("turn_waiting");
    this.#time.hidden = true; // it is the reader's time
    for (const row of this.#rows.values()) row.end("waiting");
  }

  /** Ends the list: rows still running take `status` (done, failed or stopped). */
  end(status, milliseconds) {
    clearInterval(this.#clock);
    this.#time.remove();
    this.element.hidden = this.#rows.size + this.#tools.size === 0;
    setLabel(this.#state, `turn_${status}`, { seconds: writtenSeconds(milliseconds) });
    for (const row of [...this.#rows.values(), ...this.#tools.values()]) row.end(status);
  }

  collapse() {
    this.element.open = false;
  }

  #tick() {
    if (!this.element.isConnected) clearInterval(this.#clock); // another conversation is shown now
    setLabel(this.#time, "turn_time", { seconds: ((performance.now() - this.#startedAt) / 1000).toFixed(1) });
  }

  #add(node) {
    const row = new StepRow(node);
    this.#list.append(row.element);
    return row;
  }
}

class StepRow {
  #icon = element("span", { class: "step-icon", "aria-hidden": "true" });
  #name = element("span", { class: "step-name" });
  #mark = element("span", { class: "step-mark" });
  #time = element("span", { class: "step-time" });
  #details = element("span", { class: "step-details" });
  #subStatus = element("span", { class: "step-sub-status" });
  #startedAt = Date.now();

  constructor(node) {
    const head = element("div", { class: "step-head" }, this.#name, this.#mark);
    const body = element("div", { class: "step-body" }, this.#details, this.#subStatus);
    this.element = element("li", { class: "step", "data-node": node }, this.#icon, head, body, this.#time);
  }

  /** Shows `data`; its timestamps give the time taken, because frames may arrive in bundles. */
  update(data) {
    const at = Date.parse(data.timestamp) || Date.now();
    if (data.status === "running") this.#startedAt = at;
    else this.#time.textContent = duration(at - this.#startedAt);
    this.#showIcon(data.icon ?? "");
    this.#name.textContent = data.display_name ?? data.node;
    this.#details.textContent = data.details ?? "";
    this.#subStatus.textContent = data.sub_status ?? "";
    this.#setStatus(data.status ?? "running");
  }

  end(status) {
    if (this.element.dataset.status !== "running") return;
    this.#subStatus.textContent = ""; // it says that something is being done
    this.#setStatus(status);
  }

  #showIcon(icon) {
    if (this.#icon.dataset.icon === icon) return;
    this.#icon.dataset.icon = icon;
    const drawing = DRAWINGS[icon];
    const text = element("span", { class: drawing ? "visually-hidden" : "" }, icon);
    this.#icon.replaceChildren(...(drawing ? [glyph(drawing)] : []), text);
  }

  #setStatus(status) {
    this.element.dataset.status = status;
    const mark = MARKS[status] ? glyph(MARKS[status]) : element("span", { class: "spinner" });
    const text = label(`step_${status}`);
    if (status !== "failed" && status !== "stopped") text.className = "visually-hidden";
    this.#mark.replaceChildren(mark, text);
  }
}

function duration(milliseconds) {
  return milliseconds < 1000 ? `${Math.max(milliseconds, 0)} ms` : `${(milliseconds / 1000).toFixed(2)} s`;
}

/** Seconds with one decimal; of less than a second two, because nothing takes no time. */
function writtenSeconds(milliseconds) {
  const seconds = Math.max(milliseconds / 1000, 0.01);
  return seconds.toFixed(seconds < 1 ? 2 : 1);
}
