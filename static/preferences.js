/** What the reader chose last time; a browser that keeps nothing (private mode, storage refused) just forgets. */

const PREFIX = "citu.";

/** The stored value, or null. */
export function recall(name) {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Stores `value`. */
export function remember(name, value) {
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch {
    // see above
  }
}
