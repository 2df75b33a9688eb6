/** Example questions about the connected database. */

import { request } from "./api.js";
import { element } from "./dom.js";

/** Shows them in `list`, inside `block`, which stays hidden while there are none. */
export class Examples {
  #block;
  #list;
  #onChoose;
  #path;
  #known = new Map(); // addresses → questions
  #wanted = null;

  /** `path(address)` adds to an address which database is asked. */
  constructor(block, list, onChoose, path = (address) => address) {
    this.#block = block;
    this.#list = list;
    this.#onChoose = onChoose;
    this.#path = path;
  }

  /** Shows those in that language; none if the server has none, or wants a key first. */
  async show(language) {
    const wanted = this.#path(`examples?lang=${language}`);
    this.#wanted = wanted;
    const questions = this.#known.get(wanted) ?? (await this.#ask(wanted));
    if (wanted !== this.#wanted) return; // another language or database was chosen meanwhile
    this.#block.hidden = questions.length === 0;
    this.#list.replaceChildren(...questions.map((question) => this.#item(question)));
  }

  /** Those that are shown. */
  get shown() {
    return this.#known.get(this.#wanted) ?? [];
  }

  async #ask(address) {
    try {
      const { examples } = await request(address, { asksForKey: false });
      this.#known.set(address, examples);
      return examples;
    } catch {
      return [];
    }
  }

  #item(question) {
    const button = element("button", { type: "button", class: "example" }, question);
    button.addEventListener("click", () => this.#onChoose(question));
    return element("li", {}, button);
  }
}
