/** How one value of a result is shown. */

import { element, setTranslatedAttribute } from "./dom.js";
import { durationOf } from "./durations.js";
import { NumberText, stringifyExact } from "./exact_json.js";
import { label } from "./texts.js";

const NUMERIC_TYPES = new Set(["int2", "int4", "int8", "numeric", "float4", "float8", "money", "oid"]);
const PLAIN_NUMBER = /^(-?)(\d+)(\.\d+)?$/;
const MOMENT_TYPES = new Set(["timestamp", "timestamptz"]);
const MOMENT = /^(\d{4,}-\d\d-\d\d)T([\d:.]+)(Z|[+-][\d:]+)?$/;
const LONGEST_FRACTION = 6; // digits; more are the work of a division, not of somebody who measured
const DECIMALS = 4; // that are shown of those
const LONG_TEXT = 40; // characters from which a cell may wrap

/** Whether a column's values are right-aligned. */
export function isNumeric(type) {
  return NUMERIC_TYPES.has(type);
}

/** `1234567.80` → `1,234,567.80`; anything that is not a plain decimal number stays as it is. */
export function groupThousands(source) {
  const match = PLAIN_NUMBER.exec(source);
  if (!match) return source;
  const [, sign, whole, fraction = ""] = match;
  return sign + whole.replace(/\B(?=(\d{3})+$)/g, ",") + fraction;
}

/** `1234567.8` → `1,234,567.80`: two decimals, a half rounded to the even digit, as the answer's sentence does it. */
function asMoney(source) {
  const match = PLAIN_NUMBER.exec(source);
  if (!match) return source;
  const [, sign, whole, fraction = ""] = match;
  const digits = fraction.slice(1).padEnd(2, "0");
  const cents = BigInt(whole + digits.slice(0, 2));
  const rest = digits.slice(2).replace(/0+$/, "");
  const isUp = rest > "5" || (rest === "5" && cents % 2n === 1n);
  const text = String(isUp ? cents + 1n : cents).padStart(3, "0");
  return groupThousands(`${sign}${text.slice(0, -2)}.${text.slice(-2)}`);
}

/** `33.3333` → `33.33`: two decimals at most. */
function asPercent(source) {
  return PLAIN_NUMBER.test(source) ? asMoney(source).replace(/\.?0+$/, "") : source;
}

/** `0.9786369950817957` → `0.9786`, `0.0000123456789` → `0.0000123`; shorter fractions stay whole. */
function asFigure(source) {
  const [, , whole, fraction = ""] = PLAIN_NUMBER.exec(source) ?? [];
  if (fraction.length - 1 <= LONGEST_FRACTION) return groupThousands(source);
  const noughts = /^\.0*/.exec(fraction)[0].length - 1;
  const digits = Number(whole) === 0 && noughts >= DECIMALS - 1 ? noughts + 3 : DECIMALS;
  const isSmallEnough = whole.length + digits <= 15; // what a JavaScript number holds exactly
  return isSmallEnough ? groupThousands(Number(source).toFixed(digits).replace(/\.?0+$/, "")) : groupThousands(source);
}

// By a column's format: 2025 is a year and 100234 a shop, which get no thousands separators.
const WRITE = { money: asMoney, number: asFigure, percent: asPercent, plain: (source) => source };

/** A number as columns of that format write it. */
function writtenNumber(source, format) {
  return (WRITE[format] ?? groupThousands)(source);
}

/** `2025-03-01T09:30:00+08:00` → `2025-03-01 09:30:00 +08:00`; other texts stay as they are. */
function writtenMoment(source) {
  const [, day, time, offset] = MOMENT.exec(source) ?? [];
  if (!day) return source;
  return offset ? `${day} ${time} ${offset}` : `${day} ${time}`;
}

/** A `<td>` for `value` of a column; `format` as the server gives it. Numbers keep their exact value in `<data value>`. */
export function cell(value, type, format) {
  if (value === null) return nullCell(type);
  if (isNumeric(type)) return numberCell(String(value), format);
  if (type === "interval" && durationOf(String(value))) return durationCell(String(value));
  if (MOMENT_TYPES.has(type)) return element("td", {}, writtenMoment(String(value)));
  const text = isStructure(value) ? stringifyExact(value) : String(value);
  return element("td", { class: text.length > LONG_TEXT ? "long" : "" }, text);
}

function isStructure(value) {
  return typeof value === "object" && !(value instanceof NumberText);
}

function nullCell(type) {
  const mark = element("span", { class: "null" }, "NULL");
  setTranslatedAttribute(mark, "title", "null_title");
  return element("td", { class: isNumeric(type) ? "number" : "" }, mark);
}

function numberCell(source, format) {
  return element("td", { class: "number" }, numberText(source, format));
}

/** A `<data>` of the exact number, with what is shown of it; a shortened one says itself whole under the pointer. */
export function numberText(source, format) {
  const shown = writtenNumber(source, format);
  const isShortened = shown.replaceAll(",", "").length < source.length;
  return element("data", isShortened ? { value: source, title: source } : { value: source }, shown);
}

function durationCell(source) {
  const { sign, parts } = durationOf(source);
  return element("td", { class: "number", title: source }, label("duration", { sign, ...parts }));
}
