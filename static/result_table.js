/** The rows of an answer as a table that can be sorted. */

import { cell, isNumeric } from "./cells.js";
import { element, glyph, setTranslatedAttribute } from "./dom.js";
import { asPeriod } from "./periods.js";
import { setLabel } from "./texts.js";

const ROWS_AT_ONCE = 200; // more are added on demand, so that a long result does not freeze the page

/** A `<div>` with the table of a `query_result` `{columns, column_types, labels?, units?, periods?, formats?, rows}`. */
export class ResultTable {
  #result;
  #rows; // in the order shown
  #body = element("tbody");
  #heads;
  #more = null;

  constructor(result) {
    this.#result = result;
    this.#rows = result.rows;
    this.#heads = result.columns.map((_name, index) => this.#head(index));
    const table = element("table", {}, element("thead", {}, element("tr", {}, ...this.#heads)), this.#body);
    const scroller = element("div", { class: "table-scroll", tabindex: "0", role: "region" }, table);
    setTranslatedAttribute(scroller, "aria-label", "rows_title");
    this.element = element("div", { class: "table-place" }, scroller);
    this.#fill();
  }

  /** The rows as they are sorted now, header first, each value as text. */
  texts() {
    const heads = this.#result.columns.map((name, index) => this.#result.labels?.[index] ?? name);
    return [heads, ...this.#rows.map((row) => row.map((value, index) => (value === null ? "" : String(this.#shown(value, index)))))];
  }

  #head(index) {
    const { columns, column_types: types, labels, units } = this.#result;
    const name = labels?.[index] ?? columns[index];
    const unit = units?.[index] ? element("span", { class: "unit" }, units[index]) : null;
    const button = element("button", { type: "button", class: "sort" }, element("span", {}, name), unit, glyph("sort"));
    button.addEventListener("click", () => this.#sort(index));
    const type = types?.[index] ?? "";
    const title = name === columns[index] ? type : `${columns[index]} · ${type}`;
    return element("th", { scope: "col", class: isNumeric(type) ? "number" : "", title, "aria-sort": "none" }, button);
  }

  /** Down first, because the most is what is mostly looked for; then up; then as they came. */
  #sort(index) {
    const before = this.#heads[index].getAttribute("aria-sort");
    const order = { none: "descending", descending: "ascending", ascending: "none" }[before];
    for (const head of this.#heads) head.setAttribute("aria-sort", "none");
    this.#heads[index].setAttribute("aria-sort", order);
    const sign = order === "descending" ? -1 : 1;
    const rows = [...this.#result.rows];
    this.#rows = order === "none" ? rows : rows.sort((one, other) => compared(one[index], other[index], sign));
    this.#body.replaceChildren();
    this.#fill();
  }

  #fill() {
    this.#more?.remove();
    this.#more = null;
    const start = this.#body.childElementCount;
    const end = Math.min(start + ROWS_AT_ONCE, this.#rows.length);
    this.#body.append(...this.#rows.slice(start, end).map((row) => this.#row(row)));
    if (end < this.#rows.length) this.element.append((this.#more = this.#moreButton(end)));
  }

  #row(row) {
    const { column_types: types, formats } = this.#result;
    return element("tr", {}, ...row.map((value, index) => cell(this.#shown(value, index), types?.[index] ?? "", formats?.[index])));
  }

  #shown(value, index) {
    return asPeriod(value, this.#result.periods?.[index]);
  }

  #moreButton(start) {
    const button = element("button", { type: "button", class: "secondary" });
    setLabel(button, "more_rows", { count: Math.min(ROWS_AT_ONCE, this.#rows.length - start) });
    button.addEventListener("click", () => this.#fill());
    return button;
  }
}

/** Empty cells stand last, whatever the order. */
function compared(one, other, sign) {
  if (one === null || other === null) return (one === null) - (other === null);
  const [a, b] = [Number(one), Number(other)];
  if (typeof one !== "string" && !Number.isNaN(a) && !Number.isNaN(b)) return sign * (a - b);
  return sign * String(one).localeCompare(String(other));
}
