/** Draws the chart that the server suggests for a result. The library is loaded with the first chart. */

import { at } from "./address.js";
import { groupThousands } from "./cells.js";
import { element } from "./dom.js";
import { asPeriod } from "./periods.js";
import { compactNumber, onSpeak } from "./texts.js";
import { onColours } from "./theme.js";

const LIBRARY = at("static/vendor/chart-4.6.1.min.js");
const COLOURS = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6"];
const MOST_LABELLED = 14; // bars whose names are written slanted rather than left out

let library = null;

/** Resolves when the library is there; rejects when it can't be loaded. */
function loaded() {
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
 * A `<figure>` for `chart` `{type, x, y, series, title, unit}` of `result`, and a promise that rejects when it can't be
 * drawn. One figure alone is text and needs no library.
 */
export function resultChart(chart, result) {
  const caption = element("figcaption", {}, unitNote(chart));
  if (chart.type === "number") {
    return { figure: element("figure", { class: "chart figure-alone" }, bigNumber(chart, result), caption), drawn: Promise.resolve() };
  }
  const canvas = element("canvas", { role: "img", "aria-label": chart.title });
  const figure = element("figure", { class: "chart" }, caption, element("div", { class: "chart-place" }, canvas));
  return { figure, drawn: loaded().then((Chart) => draw(Chart, canvas, chart, result)) };
}

function unitNote({ title, unit }) {
  return unit ? `${title} (${unit})` : title;
}

function bigNumber(chart, result) {
  const value = result.rows[0][result.columns.indexOf(chart.y)];
  return element("p", { class: "big-number" }, element("data", { value: String(value) }, groupThousands(String(value))));
}

function draw(Chart, canvas, chart, result) {
  let drawing = new Chart(canvas, configuration(chart, result));
  const redraw = () => {
    drawing.destroy();
    if (canvas.isConnected) drawing = new Chart(canvas, configuration(chart, result));
    else for (const end of ends) end(); // the conversation is no longer shown
  };
  const ends = [onColours(redraw), onSpeak(redraw)];
}

function configuration(chart, result) {
  const colours = COLOURS.map(colour);
  const data = chart.type === "scatter" ? dots(chart, result) : series(chart, result);
  const isPie = chart.type === "pie";
  data.datasets.forEach((set, index) => {
    set.backgroundColor = isPie ? colours : colours[index % colours.length];
    set.borderColor = isPie ? colour("--surface") : colours[index % colours.length];
    set.borderWidth = chart.type === "line" ? 2 : isPie ? 2 : 0;
    if (chart.type === "line") set.pointRadius = data.labels.length > 40 ? 0 : 3;
  });
  return { type: chart.type, data, options: options(chart, data, isPie) };
}

function options(chart, data, isPie) {
  const text = { color: colour("--text-soft") };
  const grid = { color: colour("--line") };
  const numbers = (value) => groupThousands(String(value));
  const isScatter = chart.type === "scatter";
  const scales = {
    x: { ticks: { ...text, autoSkip: (data.labels?.length ?? 0) > MOST_LABELLED, ...(isScatter ? { callback: compactNumber } : {}) }, grid: { display: false } },
    y: { ticks: { ...text, callback: compactNumber }, grid, beginAtZero: chart.type === "bar" },
  };
  const label = (item) => `${item.dataset.label}: ${numbers(isPie ? item.raw : isScatter ? item.raw.y : item.raw)}`;
  return {
    animation: false,
    maintainAspectRatio: false,
    interaction: { mode: isPie || isScatter ? "nearest" : "index", intersect: false },
    plugins: {
      legend: { display: isPie || data.datasets.length > 1, labels: { color: colour("--text") } },
      tooltip: { callbacks: { label } },
    },
    ...(isPie ? {} : { scales }),
  };
}

/** A data set per value of `series`, with a figure for each value of `x`; null where there is none. Time goes forward. */
function series({ type, x, y, series: split }, result) {
  const [xAt, yAt, splitAt] = [x, y, split].map((name) => result.columns.indexOf(name));
  const shownX = (row) => shown(row[xAt], result.periods?.[xAt]);
  const labels = [...new Set(result.rows.map(shownX))];
  if (type === "line" || isTime(result.column_types[xAt])) labels.sort();
  const names = splitAt < 0 ? [result.labels?.[yAt] ?? y] : [...new Set(result.rows.map((row) => shown(row[splitAt])))];
  const datasets = names.map((label) => ({ label, data: labels.map(() => null) }));
  for (const row of result.rows) {
    const set = splitAt < 0 ? datasets[0] : datasets[names.indexOf(shown(row[splitAt]))];
    set.data[labels.indexOf(shownX(row))] = row[yAt] === null ? null : Number(row[yAt]);
  }
  return { labels, datasets };
}

function dots({ x, y }, result) {
  const [xAt, yAt] = [result.columns.indexOf(x), result.columns.indexOf(y)];
  const known = result.rows.filter((row) => row[xAt] !== null && row[yAt] !== null);
  const data = known.map((row) => ({ x: Number(row[xAt]), y: Number(row[yAt]) }));
  return { datasets: [{ label: result.labels?.[yAt] ?? y, data }] };
}

function shown(value, period = null) {
  return value === null ? "—" : String(asPeriod(value, period));
}

function isTime(type) {
  return type === "date" || type.startsWith("timestamp");
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
