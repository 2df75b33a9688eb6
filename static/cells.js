/** How one value of a result is shown. */

import { element, setTranslatedAttribute } from "./dom.js";
import { NumberText, stringifyExact } from "./exact_json.js";

const NUMERIC_TYPES = new Set(["int2", "int4", "int8", "numeric", "float4", "float8", "money", "oid"]);
const PLAIN_NUMBER = /^(-?)(\d+)(\.\d+)?$/;
// Columns of numbers that name things: 2025 is a year, 100234 a shop. They get no thousands separators.
const NAMES_THINGS = /(^|_)(id|no|code|year|zip|phone)$|(编号|代码|编码|年份|年度|年|号)$/i;
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

/** A `<td>` for `value` of a column. Numbers keep their exact value in `<data value>`. */
export function cell(value, column, type) {
  if (value === null) return nullCell(type);
  if (isNumeric(type)) return numberCell(String(value), column);
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

function numberCell(source, column) {
  const shown = NAMES_THINGS.test(column) ? source : groupThousands(source);
  return element("td", { class: "number" }, element("data", { value: source }, shown));
}
