/** What the words in the question box may become: a list above the box, for the keys, a mouse or a finger. */

import { request } from "./api.js";
import { element } from "./dom.js";
import { label, setLabel } from "./texts.js";

const TYPING_MS = 90; // how long the reader pauses before the server is asked
const LONGEST = 300; // characters of a question that is still completed

/**
 * Completes the text of `box`, whose listbox is `list`; `status` tells those who listen how many there are, because a
 * text of several lines can't be a combobox, which would say that its list is open. `path(address)` adds to an address
 * which database is asked; `onTaken()` is called when one was put into the box.
 */
export class Completions {
  #box;
  #list;
  #status;
  #path;
  #onTaken;
  #found = [];
  #active = -1;
  #typing = 0;
  #asked = new AbortController();

  constructor(box, { list, status, path, onTaken }) {
    this.#box = box;
    this.#list = list;
    this.#status = status;
    this.#path = path;
    this.#onTaken = onTaken;
    box.addEventListener("blur", () => this.close());
    // A press keeps the box focused, so that the list is still there when it is let go.
    list.addEventListener("pointerdown", (event) => event.preventDefault());
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.#take([...this.#list.children].indexOf(option));
    });
  }

  /** The text has changed. */
  typed(event) {
    this.close();
    const text = this.#box.value;
    const isAtEnd = this.#box.selectionEnd === text.length;
    if (event.isComposing || !isAtEnd || text.trim() === "" || text.length > LONGEST) return;
    this.#typing = setTimeout(() => this.#ask(text), TYPING_MS);
  }

  /** Whether the key was for the list. */
  takesKey(event) {
    if (this.#list.hidden || event.isComposing || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return false;
    const act = {
      ArrowDown: () => this.#go(1),
      ArrowUp: () => this.#go(-1),
      Tab: () => this.#take(Math.max(this.#active, 0)),
      Escape: () => this.close(),
      Enter: this.#active < 0 ? null : () => this.#take(this.#active),
    }[event.key];
    if (!act) return false;
    event.preventDefault();
    event.stopPropagation(); // Escape would stop the question that runs
    act();
    return true;
  }

  close() {
    clearTimeout(this.#typing);
    this.#asked.abort();
    this.#show([]);
  }

  async #ask(text) {
    const asked = (this.#asked = new AbortController());
    const query = new URLSearchParams({ q: text });
    try {
      const { completions } = await request(this.#path(`completions?${query}`), { asksForKey: false, signal: asked.signal });
      if (!asked.signal.aborted && this.#box.value === text && document.activeElement === this.#box) this.#show(completions);
    } catch {
      // Who types goes on without.
    }
  }

  #show(completions) {
    this.#found = completions;
    this.#active = -1;
    this.#list.replaceChildren(...completions.map(option));
    this.#list.hidden = completions.length === 0;
    this.#box.removeAttribute("aria-activedescendant");
    if (completions.length) setLabel(this.#status, "completions_found", { count: completions.length });
    else {
      delete this.#status.dataset.text;
      this.#status.textContent = "";
    }
  }

  /** Moves the mark; beyond the ends none is marked. */
  #go(step) {
    const stops = this.#found.length + 1;
    this.#active = ((this.#active + 1 + step + stops) % stops) - 1;
    [...this.#list.children].forEach((node, index) => node.setAttribute("aria-selected", String(index === this.#active)));
    const marked = this.#list.children[this.#active];
    if (marked) this.#box.setAttribute("aria-activedescendant", marked.id);
    else this.#box.removeAttribute("aria-activedescendant");
    marked?.scrollIntoView({ block: "nearest" });
  }

  #take(index) {
    this.#box.value = this.#found[index].completed;
    this.close();
    this.#onTaken();
  }
}

function option({ kind, text, about }, index) {
  const name = element("span", { class: "completion-text", dir: "auto" }, text);
  const origin = about ? element("span", { class: "completion-about", dir: "auto" }, about) : null;
  const what = element("span", { class: "completion-about" }, origin, origin ? " · " : null, label(`completion_${kind}`));
  return element("li", { role: "option", id: `completion-${index}`, "aria-selected": "false" }, name, what);
}
