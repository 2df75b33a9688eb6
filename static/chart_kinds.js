/** Which charts can show a result, of which of its columns, and the names and figures that these draw. */

import { groupThousands, isNumeric } from "./cells.js";
import { asRead } from "./periods.js";
import { translate } from "./texts.js";

const MOST_BARS = 50;
const MOST_SLICES = 6; // as many as there are colours
const MOST_POINTS = 400; // of a line or an area
const LEAST_DOTS = 3;
const MOST_SERIES = 12;
/** Characters of a name along an axis or in a legend; the whole is shown over the figure. */
export const LONGEST_NAME = 16;
/** Bars whose names are written slanted rather than left out. */
export const MOST_LABELLED = 14;
const SHORT_NAME = 5; // characters, of which any number can be left out: `12月`, `Q3`
const MOMENT = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/;

/** Every way to show rows, in the order of the switch. */
export const KINDS = ["bar", "horizontal", "line", "area", "pie", "scatter", "number", "table"];

/**
 * The columns of a chart `{type, x, y, series, title, unit}` for `result`: what the server suggests, else the first column
 * of names or times and the first of figures. Null where a chart would show only some of the rows, or nothing.
 */
export function chartColumns(result, suggested) {
  if (suggested) return suggested;
  const { columns, column_types: types = [], formats, labels, units, row_count: count, total = count } = result;
  const isUnique = new Set(columns).size === columns.length;
  if (!isUnique || result.is_limited || total > result.rows.length) return null;
  const figures = columns.filter((_name, at) => isFigure(types[at], formats?.[at]) && holdsFigures(result, at));
  if (figures.length === 0) return null;
  const [y] = figures;
  const [x = null, second = null] = columns.filter((name, at) => !figures.includes(name) && isName(types[at], formats?.[at]));
  const at = columns.indexOf(y);
  const isSplit = x !== null && second !== null && distinct(result, [x]) < result.rows.length;
  return { type: "table", x, y, series: isSplit ? second : null, title: labels?.[at] ?? y, unit: units?.[at] ?? null };
}

/** The kinds of `KINDS` that can show `result`; `table` always can. */
export function fittingKinds(result, chart) {
  const fits = (kind) => kind === chart.type || FITS[kind](result, columnsAs(kind, result, chart));
  return KINDS.filter((kind) => kind === "table" || (chart !== null && fits(kind)));
}

/** The columns for showing `result` as `kind`: dots are of two figures, bars of a figure and the names beside it. */
export function columnsAs(kind, result, chart) {
  if (chart.type !== "scatter" || kind === "scatter") return chart;
  return chartColumns(result, null) ?? chart;
}

/**
 * The kind of `kinds` to begin with: names that are too long or too many to stand beside each other stand above each other.
 */
export function firstKind(result, chart, kinds) {
  if (chart.type !== "bar" || chart.series !== null || chart.step || !kinds.includes("horizontal")) return chart.type;
  const at = result.columns.indexOf(chart.x);
  const type = result.column_types?.[at] ?? "";
  if (isNumeric(type) || isTime(type)) return chart.type;
  const names = result.rows.map((row) => shown(row[at], result, at));
  const long = names.filter((name) => name.length > LONGEST_NAME);
  const areTooMany = names.length > MOST_LABELLED && names.some((name) => name.length > SHORT_NAME);
  return areTooMany || 3 * long.length > names.length ? "horizontal" : chart.type;
}

/** The place of the column that names the rows; -1 where there is none. */
export function namesPlace({ columns, column_types: types = [], formats }) {
  return columns.findIndex((_name, at) => isName(types[at], formats?.[at]));
}

/** What the column's figures add up to; null for averages, shares and whatever else must not be added. */
export function totalOf(result, name) {
  const total = result.totals?.[result.columns.indexOf(name)] ?? null;
  return total === null ? null : Number(total);
}

/** The columns of a chart of dots: two of figures. */
export function dotColumns(result, chart) {
  if (chart.type === "scatter") return [chart.x, chart.y];
  const { column_types: types = [], formats } = result;
  const other = result.columns.find((name, at) => name !== chart.y && isFigure(types[at], formats?.[at]) && holdsFigures(result, at));
  return other === undefined ? null : [other, chart.y];
}

const FITS = {
  bar: (result, chart) => isGrouped(result, chart, MOST_BARS),
  horizontal: (result, chart) => isGrouped(result, chart, MOST_BARS),
  line: (result, chart) => isGrouped(result, chart, MOST_POINTS),
  area: (result, chart) => !chart.others && isGrouped(result, chart, MOST_POINTS) && isNowhereNegative(result, chart),
  pie: (result, chart) => !chart.others && isWhole(result, chart),
  scatter: (result, chart) => result.rows.length >= LEAST_DOTS && dotColumns(result, chart) !== null,
  number: (result, chart) => result.rows.length === 1 || totalOf(result, chart.y) !== null,
};

/** One figure for each value of `x`, or of `x` and `series`. */
function isGrouped(result, { type, x, series, step }, most) {
  if (step) return most === MOST_BARS; // its few steps are bars
  if (x === null || type === "scatter" || result.rows.length < 2 || distinct(result, [x]) > most) return false;
  if (series !== null && distinct(result, [series]) > MOST_SERIES) return false;
  return distinct(result, series === null ? [x] : [x, series]) === result.rows.length;
}

/** Slices are parts of something: figures that may be added, or shares. */
function isWhole(result, chart) {
  if (chart.series !== null || !isGrouped(result, chart, MOST_SLICES)) return false;
  const isShare = result.formats?.[result.columns.indexOf(chart.y)] === "percent";
  return (isShare || totalOf(result, chart.y) !== null) && isNowhereNegative(result, chart);
}

function isNowhereNegative(result, { y }) {
  const at = result.columns.indexOf(y);
  return result.rows.every((row) => row[at] === null || Number(row[at]) >= 0);
}

function distinct(result, names) {
  const places = names.map((name) => result.columns.indexOf(name));
  return new Set(result.rows.map((row) => JSON.stringify(places.map((at) => String(row[at]))))).size;
}

/** Years and keys are numbers that are not measured. */
function isFigure(type, format) {
  return isNumeric(type ?? "") && format !== "plain";
}

function isName(type, format) {
  return !isFigure(type, format) && !["json", "jsonb"].includes(type);
}

function holdsFigures(result, at) {
  const known = result.rows.filter((row) => row[at] !== null);
  return known.length > 0 && known.every((row) => Number.isFinite(Number(row[at])));
}

// ---------------------------------------------------------------------------------------------------- names and figures

/** A value as a chart names it. */
export function shown(value, result, at) {
  if (value === null) return "—";
  if (typeof value === "boolean") return translate(value ? "yes" : "no");
  const read = String(asRead(value, result, at));
  if (isNumeric(result.column_types?.[at] ?? "")) return withoutNoughts(read, result.formats?.[at]);
  return MOMENT.test(read) ? read.slice(0, 16).replace("T", " ") : read;
}

/** `10000.0` → `10,000`; keys and years are in no groups. */
function withoutNoughts(source, format) {
  const short = source.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  return format === "plain" ? short : groupThousands(short);
}

/**
 * The names along the axis and the data sets of figures: one for each value of `series`, else for `y` and each of
 * `others`; of a histogram the steps. Null where there is no figure. Names stand as `order` says, else as they come; in
 * lines and areas time goes forward.
 */
export function figuresOf(result, chart, kind) {
  if (chart.step) return stepsOf(result, chart);
  const { columns, column_types: types } = result;
  const xAt = columns.indexOf(chart.x);
  const isLine = kind === "line" || kind === "area";
  const isCourse = isLine ? isTime(types[xAt]) || (chart.type === "line" && !chart.order) : isTime(types[xAt]) && chart.type === "table";
  const rows = inOrder(result.rows, xAt, chart.order);
  const names = rows.map((row) => shown(row[xAt], result, xAt));
  const xs = chart.series === null && !isCourse ? toldApart(names) : names;
  const labels = [...new Set(xs)];
  if (isCourse) labels.sort();
  const places = new Map(labels.map((label, at) => [label, at]));
  const sets = new Map((chart.series_order ?? []).map((value) => [shown(value, result, columns.indexOf(chart.series)), labels.map(() => null)]));
  const add = (row, x, label, y) => {
    if (!sets.has(label)) sets.set(label, labels.map(() => null));
    sets.get(label)[places.get(x)] = row[y] === null ? null : Number(row[y]);
  };
  for (const [at, row] of rows.entries()) for (const [label, y] of partsOf(row, result, chart)) add(row, xs[at], label, y);
  return { labels, datasets: [...sets].map(([label, data]) => ({ label, data })) };
}

function inOrder(rows, at, order) {
  if (!order) return rows;
  const places = new Map(order.map((value, place) => [String(value), place]));
  const placeOf = (row) => places.get(String(row[at])) ?? places.size;
  return [...rows].sort((one, other) => placeOf(one) - placeOf(other));
}

/** The data sets to which a row gives a figure, each with the figure's place. */
function partsOf(row, result, { y, series, others = [] }) {
  const { columns, labels: names } = result;
  const splitAt = columns.indexOf(series);
  if (splitAt >= 0) return [[shown(row[splitAt], result, splitAt), columns.indexOf(y)]];
  const places = [y, ...others].map((name) => columns.indexOf(name));
  return places.map((at) => [names?.[at] ?? columns[at], at]);
}

/** The names, with a number behind each that has come before: two customers may be called alike. */
function toldApart(names) {
  const often = new Map();
  return names.map((name) => {
    const count = (often.get(name) ?? 0) + 1;
    often.set(name, count);
    return count === 1 ? name : `${name} (${count})`;
  });
}

/** The steps of a histogram from the first to the last, and what falls into each. */
function stepsOf({ columns, rows, labels: names }, { x, y, step }) {
  const [xAt, yAt] = [x, y].map((name) => columns.indexOf(name));
  const sums = new Map();
  for (const row of rows) {
    if (row[xAt] === null) continue;
    const place = Math.floor(Number(row[xAt]) / step);
    sums.set(place, (sums.get(place) ?? 0) + Number(row[yAt]));
  }
  const first = Math.min(...sums.keys());
  const places = Array.from({ length: Math.max(...sums.keys()) - first + 1 }, (_one, at) => first + at);
  const written = (place) => String(Number((place * step).toPrecision(12)));
  const labels = places.map((place) => `${written(place)}–${written(place + 1)}`);
  return { labels, datasets: [{ label: names?.[yAt] ?? y, data: places.map((place) => sums.get(place) ?? 0) }] };
}

function isTime(type) {
  return type === "date" || type.startsWith("timestamp");
}
