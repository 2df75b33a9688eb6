/** The rows of an answer: a chart when one shows them better, the table, and ways to take them elsewhere. */

import { analysis } from "./analysis.js";
import { fileButton } from "./downloads.js";
import { groupThousands } from "./cells.js";
import { copyButton } from "./copying.js";
import { element, glyph } from "./dom.js";
import { resultChart } from "./result_chart.js";
import { ResultTable } from "./result_table.js";
import { label } from "./texts.js";

const FORMATS = ["csv", "xlsx", "json"];

/**
 * `<section>` for a `query_result`, with its `chart` if it has one. With `runId` all rows can be downloaded; a `total`
 * beyond `row_count` says that these are only the first rows of an earlier result.
 */
export function resultView(result, { chart = null, runId = null, conversationId = null } = {}) {
  const head = element("header", { class: "block-head" }, label("rows_title", {}, "h3"), countNote(result));
  const section = element("section", { class: "rows" }, head);
  if (result.rows.length === 0) {
    section.append(label("no_rows", {}, "p"));
    return section;
  }
  const table = new ResultTable(result);
  if (chart) showBoth(section, head, chart, result, table);
  else section.append(table.element);
  section.append(...tools(table, runId, conversationId));
  return section;
}

function countNote({ row_count: count, is_limited: isLimited, total = count }) {
  const counts = { count: groupThousands(String(count)), total: groupThousands(String(total)) };
  const note = label(total > count ? "rows_preview" : isLimited ? "rows_limited" : "row_count", counts);
  note.className = isLimited ? "count limited" : "count";
  return note;
}

/** The chart, with a switch to the table; the table alone when the chart can't be drawn. */
function showBoth(section, head, chart, result, table) {
  const { figure, drawn } = resultChart(chart, result);
  const views = { chart: figure, table: table.element };
  const choices = Object.keys(views).map((name) => {
    const button = element("button", { type: "button", class: "view", "data-view": name }, glyph(name), label(`view_${name}`));
    button.addEventListener("click", () => choose(name));
    return button;
  });
  const choose = (chosen) => {
    for (const [name, view] of Object.entries(views)) view.hidden = name !== chosen;
    for (const button of choices) button.setAttribute("aria-pressed", String(button.dataset.view === chosen));
  };
  const group = element("div", { class: "views", role: "group" }, ...choices);
  head.append(group);
  section.append(figure, table.element);
  choose("chart");
  drawn.catch(() => {
    figure.remove();
    group.remove();
    table.element.hidden = false;
  });
}

function tools(table, runId, conversationId) {
  const copies = [
    copyButton("copy_tsv", () => table.texts().map((row) => row.map(tsvField).join("\t")).join("\n")),
    copyButton("copy_markdown", () => markdown(table.texts())),
  ];
  if (!runId) return [element("div", { class: "result-tools" }, ...copies)];
  const files = FORMATS.map((format) => fileButton(format, runId, { conversationId }));
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
