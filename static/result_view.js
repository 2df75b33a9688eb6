/** The rows of an answer: a chart when one shows them better, the table, and ways to take them elsewhere. */

import { analysis } from "./analysis.js";
import { groupThousands } from "./cells.js";
import { chartColumns, fittingKinds } from "./chart_kinds.js";
import { pictureButton } from "./chart_images.js";
import { ChartViews } from "./chart_views.js";
import { copyButton } from "./copying.js";
import { element, isFocusLost } from "./dom.js";
import { fileButton } from "./downloads.js";
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
  if (kinds.length > 1) {
    const pictures = (drawn) => PICTURES.map((format) => pictureButton(format, drawn, question));
    new ChartViews(result, { columns, kinds, table, pictures }).addTo(section, head, tools[0]);
  } else section.append(table.element);
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
    note.tabIndex = -1;
    if (isFocusLost()) note.focus({ preventScroll: true });
    button.remove();
  });
  return button;
}

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
