/** The switch beside the question that says which database is asked, where there are several. */

import { request } from "./api.js";
import { element } from "./dom.js";
import { label, language } from "./texts.js";
import { onThisDevice } from "./memory.js";

/** `row` holds `select` with its label, and stays hidden while there is but one. `onChange()` is told of choices. */
export class Databases {
  #row;
  #select;
  #onChange;

  constructor(row, select, onChange) {
    this.#row = row;
    this.#select = select;
    this.#onChange = onChange;
    select.addEventListener("change", () => {
      onThisDevice.remember("database", select.value);
      onChange();
    });
  }

  /** The name of the database that is chosen; null where the question decides. */
  get chosen() {
    return (!this.#row.hidden && this.#select.value) || null;
  }

  /** Reads the databases again, and chooses one of them, if it is there. */
  async choose(name) {
    await this.show();
    if (![...this.#select.options].some((option) => option.value === name)) return;
    this.#select.value = name;
    this.#select.dispatchEvent(new Event("change"));
  }

  /** `path` with the chosen database in its query. */
  path(path) {
    if (this.chosen === null) return path;
    const mark = path.includes("?") ? "&" : "?";
    return `${path}${mark}database=${encodeURIComponent(this.chosen)}`;
  }

  /** Reads which databases there are for this user, in the page's language. */
  async show() {
    const answer = await request(`databases?lang=${language()}`, { asksForKey: false }).catch(() => null);
    const databases = answer?.databases ?? [];
    const before = this.chosen;
    const wanted = this.#row.hidden ? onThisDevice.recall("database") : this.#select.value;
    const byQuestion = label("database_by_question", {}, "option");
    byQuestion.value = "";
    this.#select.replaceChildren(byQuestion, ...databases.map(option));
    this.#select.value = databases.some((database) => database.name === wanted) ? wanted : "";
    this.#row.hidden = databases.length < 2;
    if (this.chosen !== before) this.#onChange();
  }
}

function option(database) {
  const name = database.label === database.name ? database.name : `${database.label} (${database.name})`;
  const node = element("option", { value: database.name }, name);
  if (database.description) node.title = database.description;
  if (database.state !== "ok") node.append(" · ", label("database_unavailable", {}, "span"));
  return node;
}
