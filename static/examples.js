/** Example questions about the connected database. */

import { request } from "./api.js";
import { element } from "./dom.js";
import { askForKey } from "./key.js";
import { label } from "./texts.js";

/** Shows them in `list`, inside `block`, which stays hidden while there are none. */
export class Examples {
  #block;
  #list;
  #onChoose;
  #path;
  #known = new Map(); // addresses → questions
  #wanted = null;
  #wantsKey = false;
  #signInPath = null;

  /** `path(address)` adds to an address which database is asked. */
  constructor(block, list, onChoose, path = (address) => address) {
    this.#block = block;
    this.#list = list;
    this.#onChoose = onChoose;
    this.#path = path;
  }

  /** Shows those in that language; none if the server has none. Where it wants a key first, that is said. */
  async show(language) {
    const wanted = this.#path(`examples?lang=${language}`);
    this.#wanted = wanted;
    const questions = this.#known.get(wanted) ?? (await this.#ask(wanted));
    if (wanted !== this.#wanted) return; // another language or database was chosen meanwhile
    this.#block.hidden = questions.length === 0 && !this.#wantsKey;
    this.#block.classList.toggle("wants-key", this.#wantsKey);
    this.#list.replaceChildren(...(this.#wantsKey ? [keyItem(this.#signInPath)] : questions.map((question) => this.#item(question))));
  }

  /** Those that are shown. */
  get shown() {
    return this.#known.get(this.#wanted) ?? [];
  }

  async #ask(address) {
    try {
      const { examples } = await request(address, { asksForKey: false });
      this.#known.set(address, examples);
      this.#wantsKey = false;
      return examples;
    } catch (refusal) {
      this.#wantsKey = refusal.envelope?.code === 401;
      this.#signInPath = refusal.envelope?.data.sign_in ?? null;
      return [];
    }
  }

  #item(question) {
    const button = element("button", { type: "button", class: "example" }, question);
    button.addEventListener("click", () => this.#onChoose(question));
    return element("li", {}, button);
  }
}

/** Why there are no questions yet, and the way to them. */
function keyItem(signInPath) {
  const [why, way] = signInPath === null ? ["examples_want_key", "key_enter"] : ["examples_want_login", "sign_in"];
  const button = element("button", { type: "button", class: "secondary" }, label(way));
  button.addEventListener("click", () => askForKey(false, signInPath));
  return element("li", { class: "key-wanted" }, label(why, {}, "p"), button);
}
