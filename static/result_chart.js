/** Draws a result as a chart of the kind that is wanted. The library is loaded with the first chart. */

import { at } from "./address.js";
import { groupThousands, numberText } from "./cells.js";
import { LONGEST_NAME, MOST_LABELLED, columnsAs, dotColumns, figuresOf, namesPlace, shown, totalOf } from "./chart_kinds.js";
import { element } from "./dom.js";
import { isUnfinished } from "./periods.js";
import { compactNumber, label as text, onSpeak } from "./texts.js";
import { onColours } from "./theme.js";

const LIBRARY = at("static/vendor/chart-4.6.1.min.js");
const COLOURS = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6"];
const CHARACTER_WIDTH = 7; // pixels; an ideograph is twice as wide
const IDEOGRAPH = /\p{Ideographic}/u;
const NARROW = 500; // pixels of a drawing, in which names beside bars are as short as below them
const BAR_HEIGHT = 26; // pixels that a horizontal bar takes
const PICTURE_MARGIN = { top: 12, right: 44, bottom: 12, left: 16 };
const MOST_VALUES = 60; // figures that are written into a chart
const TYPES = { horizontal: "bar", area: "line" };
const UNFINISHED = "*";
const SEE_THROUGH = "55"; // of an area
const PALE = "80"; // of colours that come a second time

let library = null;

/** Resolves to the library; rejects when it can't be loaded. */
function loaded() {
  if (globalThis.Chart) return Promise.resolve(globalThis.Chart); // it came with the page
  library ??= new Promise((resolve, reject) => {
    const script = element("script", { src: LIBRARY });
    script.addEventListener("load", () => resolve(globalThis.Chart));
    script.addEventListener("error", () => {
      library = null; // try again with the next chart
      script.remove();
      reject(new Error("the chart library could not be loaded"));
    });
    document.head.append(script);
  });
  return library;
}

/**
 * A chart of `result` by the columns `chart` `{type, x, y, series, title, unit}`; `element` is its `<figure>`. One figure
 * alone is text and needs no library.
 */
export class ResultChart {
  #suggested;
  #chart; // the columns as they are shown now
  #result;
  #kind = null;
  #options = { hasValues: false, hasPercent: false, startsAtZero: true };
  #caption = element("figcaption");
  #place = element("div", { class: "chart-place" });
  #drawing = null;
  #ends = [];

  constructor(chart, result) {
    this.#suggested = chart;
    this.#chart = chart;
    this.#result = result;
    this.element = element("figure", { class: "chart" }, this.#caption, this.#place);
  }

  /** Shows it as `kind` of `KINDS`, with `options` `{hasValues, hasPercent, startsAtZero}`. Rejects when it can't be drawn. */
  async show(kind, options = {}) {
    this.#kind = kind;
    this.#chart = columnsAs(kind, this.#result, this.#suggested);
    this.#options = { ...this.#options, ...options };
    this.#caption.replaceChildren(...this.#captionParts());
    this.element.classList.toggle("figure-alone", kind === "number");
    this.#destroy();
    if (kind === "number") {
      this.#place.style.height = "auto";
      this.#place.replaceChildren(this.#bigNumber());
      return;
    }
    const Library = await loaded();
    if (this.#kind === kind) this.#draw(Library); // the reader may have chosen another one meanwhile
  }

  /** The chart as it is seen, drawn again by `Library` on the 2D context `context` of `width` × `height` pixels. */
  drawOn(Library, context, { width, height, ratio = 1 }) {
    const configuration = this.#configuration();
    const fixed = { responsive: false, devicePixelRatio: ratio, width, height };
    configuration.options = { ...configuration.options, ...fixed, layout: { padding: PICTURE_MARGIN } };
    configuration.plugins.push(this.#titlePlugin());
    return new Library(context, configuration);
  }

  get kind() {
    return this.#kind;
  }

  get title() {
    return this.#chart.title;
  }

  /** Pixels of the drawing on the page. */
  get size() {
    const { width, height } = this.#place.getBoundingClientRect();
    return { width: Math.round(width), height: Math.round(height) };
  }

  // ------------------------------------------------------------------------------------------------------- what is said

  #captionParts() {
    const { title, unit } = this.#chart;
    const parts = [element("span", {}, unit ? `${title} (${unit})` : title)];
    if (this.#kind === "number") return parts;
    if (this.#unfinished().size) parts.push(note("chart_unfinished"));
    if (!["x", "y"].every((axis) => this.#beginsAtZero(axis))) parts.push(note("chart_not_from_zero"));
    return parts;
  }

  /** Whether the axis begins at zero: a line's does unless the reader wants it otherwise, that of dots when they are near it. */
  #beginsAtZero(axis) {
    if (this.#kind === "line") return this.#options.startsAtZero;
    if (this.#kind !== "scatter") return true;
    const figures = this.#dots().datasets[0].data.map((dot) => dot[axis]);
    const [least, most] = [Math.min(...figures), Math.max(...figures)];
    return least <= 0 ? most >= 0 : least <= most / 2;
  }

  /** The figure alone; of several rows that may be added, their sum, and how many they are; and of which rows it is. */
  #bigNumber() {
    const { columns, rows, totals, formats, conditions } = this.#result;
    const place = columns.indexOf(this.#chart.y);
    const value = String(rows.length === 1 ? rows[0][place] : totals[place]);
    const number = element("p", { class: "big-number" }, numberText(value, formats?.[place]));
    const about = rows.length === 1 ? this.#about() : [text("chart_sum_of", { count: rows.length }, "p")];
    return element("div", {}, number, ...about, ...conditionsNote(conditions));
  }

  /** Of what the figure is: the other values of its row. */
  #about() {
    const { columns, labels, rows } = this.#result;
    const others = columns.map((name, at) => [labels?.[at] ?? name, shown(rows[0][at], this.#result, at)]);
    others.splice(columns.indexOf(this.#chart.y), 1);
    return others.map(([name, value]) => element("p", { class: "count" }, `${name} · ${value}`));
  }

  /** The labels of periods that were not over when the rows were read. */
  #unfinished() {
    const { columns, periods, rows, read_at: readAt } = this.#result;
    const place = columns.indexOf(this.#chart.x);
    const period = periods?.[place];
    const moment = readAt ? new Date(readAt) : new Date();
    const open = rows.filter((row) => isUnfinished(row[place], period, moment));
    return new Set(open.map((row) => shown(row[place], this.#result, place)));
  }

  // ------------------------------------------------------------------------------------------------------------ drawing

  #draw(Library) {
    const canvas = element("canvas", { role: "img", "aria-label": this.#chart.title });
    this.#place.style.height = this.#kind === "horizontal" ? `${this.#barsHeight()}px` : "";
    this.#place.replaceChildren(canvas);
    this.#destroy();
    const redraw = () => {
      this.#drawing?.destroy();
      if (canvas.isConnected) this.#drawing = new Library(canvas, this.#configuration());
      else this.#destroy(); // the conversation is no longer shown
    };
    redraw();
    this.#ends = [onColours(redraw), onSpeak(redraw)];
  }

  #destroy() {
    for (const end of this.#ends) end();
    this.#ends = [];
    this.#drawing?.destroy();
    this.#drawing = null;
  }

  #barsHeight() {
    const { labels, datasets } = this.#series();
    return Math.max(220, 70 + labels.length * Math.max(BAR_HEIGHT, 14 * datasets.length));
  }

  #configuration() {
    const data = this.#kind === "scatter" ? this.#dots() : this.#series();
    this.#colourSets(data);
    const plugins = this.#options.hasValues || this.#options.hasPercent ? [this.#valuesPlugin(data)] : [];
    return { type: TYPES[this.#kind] ?? this.#kind, data, options: this.#optionsOf(data), plugins };
  }

  #colourSets(data) {
    const colours = COLOURS.map(colour);
    const isPie = this.#kind === "pie";
    const isLine = this.#kind === "line" || this.#kind === "area";
    const open = isLine ? this.#unfinished() : new Set();
    const isOpen = (segment) => open.has(data.labels[segment.p1DataIndex]);
    data.datasets.forEach((set, index) => {
      const isAgain = index >= colours.length;
      const own = `${colours[index % colours.length]}${isAgain && !isLine ? PALE : ""}`;
      set.backgroundColor = this.#kind === "area" ? `${own}${SEE_THROUGH}` : own;
      set.borderColor = own;
      if (isPie) Object.assign(set, { backgroundColor: colours, borderColor: colour("--surface") });
      set.borderWidth = isLine || isPie ? 2 : 0;
      if (!isLine) return;
      set.fill = this.#kind === "area" && (index === 0 ? "origin" : "-1");
      set.pointRadius = data.labels.length > 40 ? 0 : 3;
      if (isAgain) Object.assign(set, { borderDash: [2, 3], pointStyle: "rectRot" });
      set.segment = { borderDash: (segment) => (isOpen(segment) ? [5, 4] : set.borderDash) };
    });
  }

  #optionsOf(data) {
    const isPie = this.#kind === "pie";
    const isScatter = this.#kind === "scatter";
    const axis = this.#kind === "horizontal" ? "y" : "x";
    return {
      animation: false,
      maintainAspectRatio: false,
      indexAxis: axis,
      interaction: { mode: isPie || isScatter ? "nearest" : "index", intersect: false, axis },
      layout: { padding: this.#options.hasValues || this.#options.hasPercent ? { top: 18, right: 40 } : 0 },
      plugins: {
        legend: { display: isPie || data.datasets.length > 1, labels: { color: colour("--text"), generateLabels: (drawing) => cutLegend(drawing, this.#roomForNames([], "y")) } },
        tooltip: { callbacks: { title: wholeName, label: (item) => this.#tooltip(item) } },
      },
      ...(isPie ? {} : { scales: this.#scales(data, axis) }),
    };
  }

  #scales(data, namesAxis) {
    const ink = { color: colour("--text-soft") };
    const isScatter = this.#kind === "scatter";
    const isArea = this.#kind === "area";
    const open = this.#unfinished();
    const short = isScatter ? [] : shortNames(data.labels, this.#roomForNames(data.labels, namesAxis));
    const written = { ...ink, callback: compactNumber };
    const names = isScatter
      ? { ticks: { ...written, ...wholeSteps(data.datasets[0].data.map((dot) => dot.x)) }, beginAtZero: this.#beginsAtZero("x"), title: { display: true, text: data.axis, ...ink } }
      : { ticks: { ...ink, autoSkip: namesAxis === "x" && data.labels.length > MOST_LABELLED, callback: (_value, index) => (open.has(data.labels[index]) ? `${short[index]}${UNFINISHED}` : short[index]) } };
    const drawn = data.datasets.flatMap((set) => set.data.map((figure) => (isScatter ? figure.y : figure)));
    const figures = {
      ticks: { ...written, ...wholeSteps(drawn) },
      grid: { color: colour("--line") },
      beginAtZero: this.#beginsAtZero("y"),
      stacked: isArea,
      title: { display: isScatter, text: data.datasets[0].label, ...ink },
    };
    const named = { ...names, grid: { display: false }, stacked: isArea };
    return namesAxis === "x" ? { x: named, y: figures } : { x: figures, y: named };
  }

  /** Characters of a name that have room along the axis. */
  #roomForNames(names, axis) {
    const { width } = this.size;
    if (axis === "y") return width > NARROW ? 2 * LONGEST_NAME : LONGEST_NAME;
    const each = names.some((name) => IDEOGRAPH.test(name)) ? 2 * CHARACTER_WIDTH : CHARACTER_WIDTH;
    return Math.max(LONGEST_NAME, Math.floor(width / names.length / each));
  }

  #tooltip(item) {
    if (this.#kind === "scatter") return [item.raw.name, groupThousands(String(item.raw.x)), groupThousands(String(item.raw.y))].filter(Boolean).join(" · ");
    const share = this.#share(item.raw);
    const figure = groupThousands(String(item.raw));
    return `${item.dataset.label}: ${figure}${share === null ? "" : ` (${share})`}`;
  }

  /** `12.3%` of all figures; null where they must not be added. */
  #share(figure) {
    const total = this.#chart.others ? null : totalOf(this.#result, this.#chart.y);
    if (!total || figure === null || figure < 0) return null;
    return `${((100 * figure) / total).toFixed(1)}%`;
  }

  /** Writes figures into the drawing; of those that would lie on each other only the first. */
  #valuesPlugin(data) {
    const written = (figure) => {
      if (figure === null) return "";
      const parts = [this.#options.hasValues ? compactNumber(figure) : null, this.#options.hasPercent ? this.#share(figure) : null];
      return parts.filter((part) => part !== null).join(" · ");
    };
    return {
      id: "figures",
      afterDatasetsDraw: (drawing) => {
        const marks = data.datasets.flatMap((set, index) =>
          drawing.isDatasetVisible(index) ? drawing.getDatasetMeta(index).data.map((mark, at) => [mark, written(set.data[at])]) : [],
        );
        writeFigures(drawing.ctx, marks.slice(0, MOST_VALUES), this.#kind, colour);
      },
    };
  }

  /** A picture has its title and its ground in it. */
  #titlePlugin() {
    const { title, unit } = this.#chart;
    const note = this.#captionParts().slice(1).map((part) => part.textContent).join(" · ");
    return {
      id: "picture",
      beforeInit: (drawing) => {
        drawing.options.plugins.title = { display: true, text: unit ? `${title} (${unit})` : title, color: colour("--text"), font: { size: 15 } };
        drawing.options.plugins.subtitle = { display: note !== "", text: note, color: colour("--text-soft") };
      },
      beforeDraw: ({ ctx, width, height }) => {
        ctx.save();
        ctx.fillStyle = colour("--surface");
        ctx.fillRect(0, 0, width, height);
        ctx.restore();
      },
    };
  }

  // --------------------------------------------------------------------------------------------------------------- data

  #series() {
    return figuresOf(this.#result, this.#chart, this.#kind);
  }

  #dots() {
    const { columns, rows, labels } = this.#result;
    const [x, y] = dotColumns(this.#result, this.#chart);
    const [xAt, yAt] = [columns.indexOf(x), columns.indexOf(y)];
    const known = rows.filter((row) => row[xAt] !== null && row[yAt] !== null);
    const named = namesPlace(this.#result);
    const data = known.map((row) => ({ x: Number(row[xAt]), y: Number(row[yAt]), name: named < 0 ? "" : shown(row[named], this.#result, named) }));
    return { axis: labels?.[xAt] ?? x, datasets: [{ label: labels?.[yAt] ?? y, data }] };
  }
}

function note(key) {
  const part = text(key);
  part.className = "chart-note";
  return part;
}

/** Of which rows a figure is, where the server says so. */
function conditionsNote(conditions) {
  if (!conditions) return [];
  const said = conditions.length ? text("card_conditions", { conditions }, "p") : text("card_all", {}, "p");
  said.className = "count card-conditions";
  return [said];
}

/** Half a step says nothing where things are counted. */
function wholeSteps(figures) {
  return figures.every((figure) => figure === null || Number.isInteger(figure)) ? { precision: 0 } : {};
}

/** The names with as many characters at most: their beginnings, or their beginnings and ends where these tell them apart. */
function shortNames(names, most) {
  const beginnings = names.map((name) => (name.length > most ? `${name.slice(0, most - 1)}…` : name));
  if (new Set(beginnings).size === names.length) return beginnings;
  const half = Math.floor(most / 2);
  return names.map((name) => (name.length > most ? `${name.slice(0, half - 1)}…${name.slice(-half)}` : name));
}

function wholeName([item]) {
  return item?.label ?? "";
}

function cutLegend(drawing, most) {
  const { overrides, defaults } = globalThis.Chart;
  const { generateLabels } = overrides[drawing.config.type]?.plugins?.legend?.labels ?? defaults.plugins.legend.labels;
  const items = generateLabels(drawing);
  const short = shortNames(items.map((item) => item.text), most);
  return items.map((item, at) => ({ ...item, text: short[at] }));
}

function writeFigures(ctx, marks, kind, colourOf) {
  const taken = [];
  ctx.save();
  ctx.font = "12px sans-serif";
  ctx.fillStyle = colourOf(kind === "pie" ? "--surface" : "--text");
  for (const [mark, figure] of marks) {
    const place = figure === "" ? null : placeOf(mark, kind, ctx.measureText(figure).width);
    if (place === null || taken.some((other) => overlap(place, other))) continue;
    taken.push(place);
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    ctx.fillText(figure, place.left, place.top);
  }
  ctx.restore();
}

/** The box of a figure of that width: in a slice, beside a bar that lies, above all others. */
function placeOf(mark, kind, width) {
  const { x, y } = kind === "pie" ? mark.getCenterPoint() : mark;
  if (kind === "horizontal") return { left: x + 4, top: y - 6, width, height: 12 };
  const top = kind === "pie" ? y - 6 : y - 17;
  return { left: x - width / 2, top, width, height: 12 };
}

function overlap(one, other) {
  const isBeside = one.left + one.width < other.left || other.left + other.width < one.left;
  return !isBeside && one.top + one.height >= other.top && other.top + other.height >= one.top;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
