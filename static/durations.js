/** Lengths of time as the server writes them, in ISO 8601: `P1DT2H3M4.5S`. */

const PART = /([+-]?[\d.]+)([YMWDHS])/g;
const DURATION = /^P(?:[+-]?[\d.]+[YMWD])*(?:T(?:[+-]?[\d.]+[HMS])+)?$/;
const DATE = { Y: "years", M: "months", W: "weeks", D: "days" };
const TIME = { H: "hours", M: "minutes", S: "seconds" };
const SECONDS = { years: 31_557_600, months: 2_629_800, weeks: 604_800, days: 86_400, hours: 3600, minutes: 60, seconds: 1 };

/**
 * `{sign, parts, seconds}` of a length of time: `parts` are its numbers without signs, by their units; `seconds` is for
 * comparing. Null for another text, and where days and hours differ in their signs.
 */
export function durationOf(text) {
  if (!DURATION.test(text) || text === "P") return null;
  const [date, time = ""] = text.slice(1).split("T");
  const numbers = [...unitsOf(date, DATE), ...unitsOf(time, TIME)].filter(([, number]) => number !== 0);
  const signs = new Set(numbers.map(([, number]) => Math.sign(number)));
  if (signs.size > 1) return null;
  const parts = Object.fromEntries(numbers.map(([unit, number]) => [unit, Math.abs(number)]));
  const seconds = numbers.reduce((sum, [unit, number]) => sum + number * SECONDS[unit], 0);
  return { sign: signs.has(-1) ? "-" : "", parts, seconds };
}

function unitsOf(text, units) {
  return [...text.matchAll(PART)].map(([, number, letter]) => [units[letter], Number(number)]);
}
