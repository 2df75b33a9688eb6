/** Keeps values in the browser's storage. Where that fails (private mode, storage refused), it keeps nothing. */

const PREFIX = "citu.";

class Memory {
  #open;

  constructor(open) {
    this.#open = open;
  }

  /** The value kept under `name`, or null. */
  recall(name) {
    try {
      return JSON.parse(this.#open().getItem(PREFIX + name));
    } catch {
      return null;
    }
  }

  /** Keeps `value`, anything JSON can hold. */
  remember(name, value) {
    try {
      this.#open().setItem(PREFIX + name, JSON.stringify(value));
    } catch {
      // see above
    }
  }

  forget(name) {
    try {
      this.#open().removeItem(PREFIX + name);
    } catch {
      // see above
    }
  }
}

/** Keeps values until the reader clears them. */
export const onThisDevice = new Memory(() => localStorage);

/** Keeps values until the tab is closed; they survive a reload. */
export const inThisTab = new Memory(() => sessionStorage);
