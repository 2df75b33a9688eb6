/** Times that stand for the periods they begin: a month is shown as a month, not as its first day. */

const FORMS = {
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
