/** What the browser keeps for the reader; one that keeps nothing (private mode, storage refused) just forgets. */

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

/** Until the reader clears it. */
export const onThisDevice = new Memory(() => localStorage);

/** Until the tab is closed; a reload keeps it. */
export const inThisTab = new Memory(() => sessionStorage);
