/** The rows of an answer as a table. */

import { cell, groupThousands, isNumeric } from "./cells.js";
import { element, setTranslatedAttribute } from "./dom.js";
import { label, setLabel } from "./texts.js";

const ROWS_AT_ONCE = 200; // more are added on demand, so that a long result does not freeze the page

/**
 * `<section>` for a `query_result` `{columns, column_types, rows, row_count, is_limited}`; a `total` beyond `row_count`
 * says that these are only the first rows of an earlier result.
 */
export function resultTable(result) {
  const head = element("header", { class: "block-head" }, label("rows_title", {}, "h3"), countNote(result));
  const section = element("section", { class: "rows" }, head);
  if (result.rows.length === 0) {
    section.append(label("no_rows", {}, "p"));
    return section;
  }
  const body = element("tbody");
  const table = element("table", {}, element("thead", {}, headRow(result)), body);
  const scroller = element("div", { class: "table-scroll", tabindex: "0", role: "region" }, table);
  setTranslatedAttribute(scroller, "aria-label", "rows_title");
  section.append(scroller);
  addRows(section, body, result, 0);
  return section;
}

function countNote({ row_count: count, is_limited: isLimited, total = count }) {
  const counts = { count: groupThousands(String(count)), total: groupThousands(String(total)) };
  const note = label(total > count ? "rows_preview" : isLimited ? "rows_limited" : "row_count", counts);
  note.className = isLimited ? "count limited" : "count";
  return note;
}

function headRow(result) {
  const cells = result.columns.map((name, index) => {
    const type = result.column_types?.[index] ?? "";
    return element("th", { scope: "col", class: isNumeric(type) ? "number" : "", title: type }, name);
  });
  return element("tr", {}, ...cells);
}

function addRows(section, body, result, start) {
  const end = Math.min(start + ROWS_AT_ONCE, result.rows.length);
  body.append(...result.rows.slice(start, end).map((row) => tableRow(row, result)));
  if (end < result.rows.length) section.append(moreButton(section, body, result, end));
}

function tableRow(row, result) {
  return element(
    "tr",
    {},
    ...row.map((value, index) => cell(value, result.columns[index], result.column_types?.[index] ?? "")),
  );
}

function moreButton(section, body, result, start) {
  const button = element("button", { type: "button", class: "secondary" });
  setLabel(button, "more_rows", { count: Math.min(ROWS_AT_ONCE, result.rows.length - start) });
  button.addEventListener("click", () => {
    button.remove();
    addRows(section, body, result, start);
  });
  return button;
}
