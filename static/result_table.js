/** The rows of an answer as a table that can be sorted, with the totals of what may be added up. */

import { cell, isNumeric } from "./cells.js";
import { durationOf } from "./durations.js";
import { element, glyph, setTranslatedAttribute } from "./dom.js";
import { asRead, isUnfinished, labelOf } from "./periods.js";
import { label, setLabel, translate } from "./texts.js";

const ROWS_AT_ONCE = 200; // more are added on demand, so that a long result does not freeze the page
const LONGEST_CONDITION = 60; // characters of a value that can be asked for
const SORT_GLYPHS = { none: "sort", ascending: "sort-up", descending: "sort-down" };
const STEPS = { ArrowDown: 1, ArrowUp: -1 };
const SIDEWAYS = { ArrowRight: 1, ArrowLeft: -1 };
const NAMES = new Set(["text", "varchar", "bpchar", "name"]);

/**
 * A `<div>` with the table of a `query_result` `{columns, column_types, labels?, units?, periods?, formats?, totals?, rows}`.
 * With `onAsk(question)`, names and periods are buttons that ask for these rows only.
 */
export class ResultTable {
  #result;
  #rows; // in the order shown
  #body = element("tbody");
  #heads;
  #more = null;
  #hasButton = false; // whether a button for a condition is in the table as it is sorted now
  #onAsk;

  constructor(result, { onAsk = null } = {}) {
    this.#result = result;
    this.#onAsk = onAsk;
    this.#rows = result.rows;
    this.#heads = result.columns.map((_name, index) => this.#head(index));
    const table = element("table", {}, element("thead", {}, element("tr", {}, ...this.#heads)), this.#body, this.#totals());
    const scroller = element("div", { class: "table-scroll", tabindex: "0", role: "group" }, table);
    setTranslatedAttribute(scroller, "aria-label", "rows_title");
    this.element = element("div", { class: "table-place" }, scroller);
    this.#body.addEventListener("keydown", (event) => this.#moveFocus(event));
    this.#fill();
    widenOnceSeen(this.element, scroller);
  }

  /** The rows as they are sorted now, header first, each value as text. */
  texts() {
    const heads = this.#result.columns.map((name, index) => this.#result.labels?.[index] ?? name);
    return [heads, ...this.#rows.map((row) => row.map((value, index) => (value === null ? "" : String(asRead(value, this.#result, index)))))];
  }

  #head(index) {
    const { columns, column_types: types, labels, units } = this.#result;
    const name = labels?.[index] ?? columns[index];
    const unit = units?.[index] ? element("span", { class: "unit" }, units[index]) : null;
    const button = element("button", { type: "button", class: "sort" }, element("span", {}, name), unit, glyph("sort"));
    button.addEventListener("click", () => this.#sort(index));
    const type = types?.[index] ?? "";
    const title = name === columns[index] ? type : `${columns[index]} · ${type}`;
    const isNumber = (isNumeric(type) || type === "interval") && !this.#result.value_labels?.[index];
    return element("th", { scope: "col", class: isNumber ? "number" : "", title, "aria-sort": "none" }, button);
  }

  /** Down first, because the most is what is mostly looked for; then up; then as they came. */
  #sort(index) {
    const before = this.#heads[index].getAttribute("aria-sort");
    const order = { none: "descending", descending: "ascending", ascending: "none" }[before];
    for (const head of this.#heads) showOrder(head, "none");
    showOrder(this.#heads[index], order);
    const sign = order === "descending" ? -1 : 1;
    const rows = [...this.#result.rows];
    const read = (row) => this.#compared(row[index], index);
    this.#rows = order === "none" ? rows : rows.sort((one, other) => compared(read(one), read(other), sign));
    this.#body.replaceChildren();
    this.#hasButton = false;
    this.#fill();
  }

  /** What a value is sorted by: its label where it has one, seconds where it is a length of time. */
  #compared(value, index) {
    if (this.#labelled(value, index)) return asRead(value, this.#result, index);
    const isDuration = value !== null && this.#result.column_types?.[index] === "interval";
    return isDuration ? (durationOf(value)?.seconds ?? value) : value;
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
    const cells = row.map((value, index) => {
      const stored = this.#labelled(value, index);
      const made = cell(asRead(value, this.#result, index), stored ? "" : (types?.[index] ?? ""), formats?.[index]);
      if (stored) made.title = stored;
      if (this.#onAsk && this.#isCondition(value, index)) made.replaceChildren(this.#conditionButton(made.textContent, index));
      if (this.#isOpen(value, index)) made.append(openMark());
      return made;
    });
    return element("tr", {}, ...cells);
  }

  /** A row with what columns of sums and counts add up to; null where there is no such column. */
  #totals() {
    const { totals, columns, column_types: types, formats, row_count: shown, total: count = shown } = this.#result;
    if (!totals) return null;
    const cells = columns.map((_name, index) => {
      const total = totals[index] ?? null;
      return total === null ? element("td") : cell(total, types?.[index] ?? "", formats?.[index]);
    });
    const free = totals.findIndex((total) => total === null);
    if (free >= 0) cells[free].append(label("total_of_rows", { count }));
    return element("tfoot", {}, element("tr", {}, ...cells));
  }

  // ------------------------------------------------------------------------------------------------- asking for some rows

  /** Names and periods can be asked for; figures, keys and long texts hardly name what a reader wants. */
  #isCondition(value, index) {
    const { column_types: types, periods } = this.#result;
    if (this.#labelled(value, index)) return true;
    const isName = NAMES.has(types?.[index]) || Boolean(periods?.[index]);
    return isName && typeof value === "string" && value.trim() !== "" && value.length <= LONGEST_CONDITION && !value.includes("\n");
  }

  /** Of all these buttons one is reached by Tab, the others from it by the arrow keys. */
  #conditionButton(text, index) {
    const isFirst = !this.#hasButton;
    this.#hasButton = true;
    const button = element("button", { type: "button", class: "condition", tabindex: isFirst ? "0" : "-1" }, text);
    const question = () => translate("only_these", { column: this.#name(index), value: text, isPeriod: Boolean(this.#result.periods?.[index]) });
    button.title = question();
    button.addEventListener("click", () => this.#onAsk(question()));
    return button;
  }

  /** The arrows go down and up a column of them, and to those beside them. */
  #moveFocus(event) {
    const step = STEPS[event.key] ?? SIDEWAYS[event.key];
    if (!step || !event.target.matches(".condition")) return;
    const { cellIndex: place, parentElement: row } = event.target.closest("td");
    const cells = event.key in SIDEWAYS ? [...row.cells] : [...this.#body.rows].map(({ cells }) => cells[place]);
    const buttons = cells.flatMap((one) => [...one.querySelectorAll(".condition")]);
    const next = buttons[buttons.indexOf(event.target) + step];
    if (!next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  #name(index) {
    return this.#result.labels?.[index] ?? this.#result.columns[index];
  }

  #isOpen(value, index) {
    const { periods, read_at: readAt } = this.#result;
    return isUnfinished(value, periods?.[index], readAt ? new Date(readAt) : new Date());
  }

  /** The stored value behind a label; empty where there is no label. */
  #labelled(value, index) {
    return labelOf(value, this.#result.value_labels, index) === null ? "" : String(value);
  }

  #moreButton(start) {
    const button = element("button", { type: "button", class: "secondary" });
    setLabel(button, "more_rows", { count: Math.min(ROWS_AT_ONCE, this.#rows.length - start) });
    button.addEventListener("click", () => this.#fill());
    return button;
  }
}

/** Gives a table that has more to show than fits beside the text the width of the window, when it is first seen. */
function widenOnceSeen(place, scroller) {
  const observer = new ResizeObserver(() => {
    if (scroller.clientWidth === 0) return;
    observer.disconnect();
    place.classList.toggle("is-wide", scroller.scrollWidth > scroller.clientWidth);
  });
  observer.observe(scroller);
}

function showOrder(head, order) {
  head.setAttribute("aria-sort", order);
  head.querySelector(".glyph").replaceWith(glyph(SORT_GLYPHS[order]));
}

function openMark() {
  const mark = element("span", { class: "open-period" }, "*");
  setTranslatedAttribute(mark, "title", "unfinished_title");
  return mark;
}

/** Empty cells stand last, whatever the order. */
function compared(one, other, sign) {
  if (one === null || other === null) return (one === null) - (other === null);
  const [a, b] = [Number(one), Number(other)];
  if (typeof one !== "string" && !Number.isNaN(a) && !Number.isNaN(b)) return sign * (a - b);
  return sign * String(one).localeCompare(String(other));
}
