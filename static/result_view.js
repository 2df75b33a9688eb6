/** The rows of an answer: a chart when one shows them better, the table, and ways to take them elsewhere. */

import { analysis } from "./analysis.js";
import { groupThousands } from "./cells.js";
import { chartColumns, fittingKinds, totalOf } from "./chart_kinds.js";
import { pictureButton } from "./chart_images.js";
import { copyButton } from "./copying.js";
import { element, glyph, setTranslatedAttribute } from "./dom.js";
import { fileButton } from "./downloads.js";
import { ResultChart } from "./result_chart.js";
import { ResultTable } from "./result_table.js";
import { label, setLabel } from "./texts.js";

const FORMATS = ["csv", "xlsx", "json"];
const PICTURES = ["png", "svg"];

/**
 * `<section>` for a `query_result`, with its `chart` if it has one. With `runId` all rows can be downloaded, in files named
 * by `question`; a `total` beyond `row_count` says that these are only the first rows of an earlier result. `onAsk(question)`
 * asks for some of the rows, `count()` resolves to how many there are where more were found than are shown.
 */
export function resultView(result, { chart = null, runId = null, conversationId = null, question = "", onAsk = null, count = null } = {}) {
  const head = element("header", { class: "block-head" }, label("rows_title", {}, "h3"), countNote(result, count));
  const section = element("section", { class: "rows" }, head);
  if (result.rows.length === 0) {
    section.append(label("no_rows", {}, "p"));
    return section;
  }
  const table = new ResultTable(result, { onAsk });
  const columns = chartColumns(result, chart);
  const kinds = fittingKinds(result, columns);
  const tools = toolButtons(table, { runId, conversationId, question });
  if (kinds.length > 1) new Views(result, { columns, kinds, table, question }).addTo(section, head, tools[0]);
  else section.append(table.element);
  section.append(...tools);
  return section;
}

function countNote({ row_count: shown, is_limited: isLimited, total = shown }, count) {
  const counts = { count: groupThousands(String(shown)), total: groupThousands(String(total)) };
  const isKnown = total > shown || !isLimited;
  const note = label(total > shown ? "rows_preview" : "row_count", counts);
  note.className = "count";
  if (isKnown) return note;
  note.className = "count limited";
  setLabel(note, "rows_limited", counts);
  return count ? element("span", {}, note, countButton(note, shown, count)) : note;
}

/** Counting can take as long as the query itself, so it is done when a reader wants it. */
function countButton(note, shown, count) {
  const button = element("button", { type: "button", class: "count-all" }, label("count_all"));
  button.addEventListener("click", async () => {
    button.disabled = true;
    button.replaceChildren(label("counting"));
    const total = await count();
    if (total === null) {
      button.replaceChildren(label("count_failed"));
      return;
    }
    setLabel(note, "rows_preview", { count: groupThousands(String(shown)), total: groupThousands(String(total)) });
    button.remove();
  });
  return button;
}

/** The chart in each kind that fits, and the table; the table alone when no chart can be drawn. */
class Views {
  #result;
  #columns;
  #table;
  #chart;
  #buttons;
  #group;
  #options;
  #pictures;

  constructor(result, { columns, kinds, table, question }) {
    this.#result = result;
    this.#columns = columns;
    this.#table = table;
    this.#chart = new ResultChart(columns, result);
    this.#buttons = kinds.map((kind) => this.#kindButton(kind));
    this.#group = element("div", { class: "views", role: "group" }, ...this.#buttons);
    setTranslatedAttribute(this.#group, "aria-label", "views");
    this.#options = element("div", { class: "chart-options" }, ...OPTIONS.map((option) => this.#optionButton(option)));
    this.#pictures = PICTURES.map((format) => pictureButton(format, this.#chart, question));
  }

  /** Shows the kind that the server suggests; the table where it suggests none. */
  addTo(section, head, tools) {
    head.append(this.#group);
    section.append(this.#options, this.#chart.element, this.#table.element);
    tools.append(...this.#pictures);
    this.#choose(this.#columns.type);
  }

  #kindButton(kind) {
    const button = element("button", { type: "button", class: "view", "data-view": kind }, glyph(kind), label(`view_${kind}`));
    setTranslatedAttribute(button, "title", `view_${kind}`);
    button.addEventListener("click", () => this.#choose(kind));
    return button;
  }

  #optionButton({ name, isOn = false }) {
    const button = element("button", { type: "button", class: "view option", "data-option": name, "aria-pressed": String(isOn) }, label(`chart_${name}`));
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      this.#choose(this.#chart.kind);
    });
    return button;
  }

  #choose(kind) {
    const isTable = kind === "table";
    for (const button of this.#buttons) button.setAttribute("aria-pressed", String(button.dataset.view === kind));
    this.#table.element.hidden = !isTable;
    this.#chart.element.hidden = isTable;
    for (const { name, fits } of OPTIONS) this.#option(name).hidden = !fits(kind, this.#canBeAdded);
    const hasOptions = OPTIONS.some(({ name }) => !this.#option(name).hidden);
    this.#options.hidden = !hasOptions;
    for (const button of this.#pictures) button.hidden = isTable || kind === "number";
    if (!isTable) this.#chart.show(kind, this.#chosen()).catch(() => this.#giveUp());
  }

  get #canBeAdded() {
    return totalOf(this.#result, this.#columns.y) !== null;
  }

  #option(name) {
    return this.#options.querySelector(`[data-option=${name}]`);
  }

  #chosen() {
    return Object.fromEntries(OPTIONS.map(({ name, field }) => [field, this.#isOn(name)]));
  }

  #isOn(name) {
    const button = this.#option(name);
    return !button.hidden && button.getAttribute("aria-pressed") === "true";
  }

  #giveUp() {
    for (const part of [this.#group, this.#options, this.#chart.element, ...this.#pictures]) part.remove();
    this.#table.element.hidden = false;
  }
}

const DRAWN = new Set(["bar", "horizontal", "line", "area", "pie"]);

// What a reader may want of a drawing. A line may begin elsewhere than at zero: it says so then.
const OPTIONS = [
  { name: "values", field: "hasValues", fits: (kind) => DRAWN.has(kind) },
  { name: "percent", field: "hasPercent", fits: (kind, canBeAdded) => DRAWN.has(kind) && canBeAdded },
  { name: "zero", field: "startsAtZero", isOn: true, fits: (kind) => kind === "line" },
];

function toolButtons(table, { runId, conversationId, question }) {
  const copies = [
    copyButton("copy_tsv", () => table.texts().map((row) => row.map(tsvField).join("\t")).join("\n")),
    copyButton("copy_markdown", () => markdown(table.texts())),
  ];
  if (!runId) return [element("div", { class: "result-tools" }, ...copies)];
  const files = FORMATS.map((format) => fileButton(format, runId, { conversationId, question }));
  const { button, place } = analysis(runId, conversationId);
  return [element("div", { class: "result-tools" }, button, ...copies, ...files), place];
}

function tsvField(text) {
  return text.replace(/[\t\r\n]+/g, " ");
}

function markdown([heads, ...rows]) {
  const line = (cells) => `| ${cells.map((text) => text.replace(/\|/g, "\\|").replace(/[\r\n]+/g, " ")).join(" | ")} |`;
  return [line(heads), line(heads.map(() => "---")), ...rows.map(line)].join("\n");
}
