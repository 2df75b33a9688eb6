/** Times that stand for the periods they begin: a month is shown as a month, not as its first day. */

const FORMS = {
  hour: (text) => text.slice(0, 16).replace("T", " "),
  year: (text) => text.slice(0, 4),
  quarter: (text) => `${text.slice(0, 4)}-Q${Math.floor((Number(text.slice(5, 7)) + 2) / 3)}`,
  month: (text) => text.slice(0, 7),
  week: (text) => text.slice(0, 10),
  day: (text) => text.slice(0, 10),
};
const DAY = /^\d{4}-\d\d-\d\d([T ].*)?$/;

/** Whether it is a day or a time of the years 0001 to 9999; others are longer and would be cut to other years. */
function isDay(value) {
  return typeof value === "string" && DAY.test(value) && !value.endsWith("BC");
}

/** `value` as the period it begins; what is no time stays as it is. */
export function asPeriod(value, period) {
  const form = FORMS[period];
  return form && isDay(value) ? form(value) : value;
}

/** What readers see of the value at column `at` of a `query_result`: its label, else the period it begins, else itself. */
export function asRead(value, { value_labels: labels, periods }, at) {
  return labelOf(value, labels, at) ?? asPeriod(value, periods?.[at]);
}

/** What readers call a stored value; null where it has no label. */
export function labelOf(value, labels, at) {
  return value === null ? null : (labels?.[at]?.[String(value)] ?? null);
}

// How far the next period of a unit begins, as years, months and days.
const LENGTHS = { year: [1, 0, 0], quarter: [0, 3, 0], month: [0, 1, 0], week: [0, 0, 7], day: [0, 0, 1] };
const WRITTEN = { year: /^(\d{4})$/, quarter: /^(\d{4})\D*([1-4])\D*$/, month: /^(\d{4})\D?(\d\d)\D?$/ };

/** Whether the period that begins with `value`, or is written so, had begun at `moment` and was not over yet. */
export function isUnfinished(value, period, moment = new Date()) {
  const length = LENGTHS[period];
  const begun = length ? beginOf(value, period) : null;
  if (begun === null) return false;
  const [year, month, day] = begun;
  const begin = new Date(year, month - 1, day);
  const end = new Date(year + length[0], month - 1 + length[1], day + length[2]);
  return begin <= moment && moment < end;
}

/** Year, month and day on which a period begins, of its first day or as queries write it: `2026-11`, `2026-Q4`, `2026`. */
function beginOf(value, period) {
  if (isDay(value)) return [value.slice(0, 4), value.slice(5, 7), value.slice(8, 10)].map(Number);
  const written = WRITTEN[period]?.exec(String(value));
  if (!written) return null;
  const [year, part = 1] = written.slice(1).map(Number);
  return [year, period === "quarter" ? 3 * part - 2 : part, 1];
}
