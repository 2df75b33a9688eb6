/** Example questions about the connected database. */

import { request } from "./api.js";
import { element } from "./dom.js";

/** Shows them in `list`, inside `block`, which stays hidden while there are none. */
export class Examples {
  #block;
  #list;
  #onChoose;
  #known = new Map(); // language → questions
  #wanted = null;

  constructor(block, list, onChoose) {
    this.#block = block;
    this.#list = list;
    this.#onChoose = onChoose;
  }

  /** Shows those in that language; none if the server has none, or wants a key first. */
  async show(language) {
    this.#wanted = language;
    const questions = this.#known.get(language) ?? (await this.#ask(language));
    if (language !== this.#wanted) return; // another language was chosen meanwhile
    this.#block.hidden = questions.length === 0;
    this.#list.replaceChildren(...questions.map((question) => this.#item(question)));
  }

  /** Those that are shown. */
  get shown() {
    return this.#known.get(this.#wanted) ?? [];
  }

  async #ask(language) {
    try {
      const { examples } = await request(`examples?lang=${language}`, { asksForKey: false });
      this.#known.set(language, examples);
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
