/** Which charts can show a result, and of which of its columns. */

import { isNumeric } from "./cells.js";

const MOST_BARS = 50;
const MOST_SLICES = 6; // as many as there are colours
const MOST_POINTS = 400; // of a line or an area
const LEAST_DOTS = 3;
const MOST_SERIES = 12;

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
  area: (result, chart) => isGrouped(result, chart, MOST_POINTS) && isNowhereNegative(result, chart),
  pie: isWhole,
  scatter: (result, chart) => result.rows.length >= LEAST_DOTS && dotColumns(result, chart) !== null,
  number: (result, chart) => result.rows.length === 1 || totalOf(result, chart.y) !== null,
};

/** One figure for each value of `x`, or of `x` and `series`. */
function isGrouped(result, { type, x, series }, most) {
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
