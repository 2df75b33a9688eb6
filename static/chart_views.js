/** Shows rows as a chart of the kind that the reader chooses, or as a table. */

import { firstKind, totalOf } from "./chart_kinds.js";
import { element, glyph, setTranslatedAttribute } from "./dom.js";
import { ResultChart } from "./result_chart.js";
import { label } from "./texts.js";

/**
 * The chart in each kind that fits, and the table; the table alone when no chart can be drawn. `pictures(chart)` gives
 * buttons that take the drawing elsewhere.
 */
export class ChartViews {
  #result;
  #columns;
  #table;
  #chart;
  #buttons;
  #group;
  #options;
  #pictures;

  constructor(result, { columns, kinds, table, pictures = () => [] }) {
    this.#result = result;
    this.#columns = columns;
    this.#table = table;
    this.#chart = new ResultChart(columns, result);
    this.#buttons = kinds.map((kind) => this.#kindButton(kind));
    this.#group = element("div", { class: "views", role: "group" }, ...this.#buttons);
    setTranslatedAttribute(this.#group, "aria-label", "views");
    this.#options = element("div", { class: "chart-options" }, ...OPTIONS.map((option) => this.#optionButton(option)));
    this.#pictures = pictures(this.#chart);
  }

  /** Shows the kind that the server suggests; the table where it suggests none. */
  addTo(section, head, tools) {
    head.append(this.#group);
    section.append(this.#options, this.#chart.element, this.#table.element);
    tools.append(...this.#pictures);
    this.#choose(firstKind(this.#result, this.#columns, this.#buttons.map((button) => button.dataset.view)));
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
