/**
 * JSON without losing digits: PostgreSQL's bigint and numeric hold more than a JavaScript number does, and the page
 * must show what the database said (12.50, not 12.5; 9007199254740993, not …992).
 */

/** A number that a JavaScript number would print differently; keeps the text it was sent as. */
export class NumberText {
  constructor(source) {
    this.source = source;
  }

  toString() {
    return this.source;
  }

  valueOf() {
    return Number(this.source);
  }
}

// Browsers without the third argument (before 2025) show such numbers as JavaScript rounds them.
function keepDigits(_key, value, context) {
  const isChanged = typeof value === "number" && context?.source !== undefined && String(value) !== context.source;
  return isChanged ? new NumberText(context.source) : value;
}

/** Like `JSON.parse`, with `NumberText` for the numbers that need it. */
export function parseExact(text) {
  return JSON.parse(text, keepDigits);
}

const WRITERS = [
  [(value) => value instanceof NumberText, (value) => value.source],
  [Array.isArray, (value) => `[${value.map(stringifyExact).join(", ")}]`],
  [(value) => value !== null && typeof value === "object", writeObject],
];

function writeObject(value) {
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}: ${stringifyExact(member)}`);
  return `{${members.join(", ")}}`;
}

/** The inverse of `parseExact`, on one line with spaces after separators. */
export function stringifyExact(value) {
  const writer = WRITERS.find(([matches]) => matches(value));
  return writer ? writer[1](value) : JSON.stringify(value);
}
