/** What can be asked about: the tables of the database in a drawer, searched, and each with its columns. */

import { request } from "./api.js";
import { groupThousands } from "./cells.js";
import { closable } from "./dialogs.js";
import { element, glyph } from "./dom.js";
import { failureBox } from "./failure.js";
import { label, language, setLabel } from "./texts.js";
import "./drawer_texts.js";

const AT_ONCE = 100;
const FOUND_AT_MOST = 50;
const TYPING_MS = 250; // how long the reader pauses before what was typed is searched
const MOST_VALUES = 8;

/**
 * `dialog` holds `.drawer-body`, a search field, and `.drawer-title`. `onAsk(question)` asks a sample question.
 * `path(address)` adds to an address which database is asked.
 */
export class Schema {
  #dialog;
  #body;
  #search;
  #examples;
  #path;
  #onAsk;
  #showing = 0; // counts what is shown, so that a late answer to an earlier request is not
  #typing = 0;

  constructor(dialog, { examples, onAsk, path }) {
    this.#dialog = dialog;
    this.#body = dialog.querySelector(".drawer-body");
    this.#search = dialog.querySelector("input");
    this.#examples = examples;
    this.#path = path;
    this.#onAsk = onAsk;
    closable(dialog);
    this.#search.addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => this.#list(), TYPING_MS);
    });
  }

  open() {
    this.#search.value = "";
    this.#dialog.showModal();
    this.#list();
  }

  // ---------------------------------------------------------------------------------------------------------- the list

  #list() {
    const wanted = this.#search.value.trim();
    const query = new URLSearchParams(wanted ? { q: wanted, limit: FOUND_AT_MOST } : { limit: AT_ONCE });
    this.#fetch(`schema/${wanted ? "search" : "tables"}?${query}`, (page) => {
      const items = page.tables.map((table) => this.#item(table));
      const counted = label("schema_count", { count: page.tables.length, total: page.table_count });
      const count = element("p", { class: "drawer-note with-reload" }, counted, this.#reloadButton());
      const list = element("ul", { class: "chats" }, ...items);
      return [count, list, ...this.#moreButton(list, page.next_cursor), ...(wanted ? [] : this.#samples())];
    });
  }

  /** Reads the list again, when tables were added since. */
  #reloadButton() {
    const button = element("button", { type: "button", class: "quiet" }, glyph("retry"), label("schema_reload"));
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        await request(this.#path("schema/reload"), { method: "POST" });
        this.#list();
        this.#search.focus();
      } catch (refusal) {
        button.disabled = false;
        this.#say(refusal.envelope, () => button.click());
      }
    });
    return button;
  }

  #moreButton(list, cursor) {
    if (!cursor) return [];
    const button = element("button", { type: "button", class: "secondary" }, label("schema_more"));
    button.addEventListener("click", async () => {
      button.disabled = true;
      const query = new URLSearchParams({ limit: AT_ONCE, cursor });
      try {
        const page = await request(this.#path(`schema/tables?${query}`));
        const items = page.tables.map((table) => this.#item(table));
        list.append(...items);
        items[0]?.querySelector("button")?.focus();
        button.replaceWith(...this.#moreButton(list, page.next_cursor));
      } catch (refusal) {
        button.disabled = false;
        this.#say(refusal.envelope, () => button.click());
      }
    });
    return [button];
  }

  #item(table) {
    const name = element("span", { class: "chat-title", dir: "auto" }, calledBy(table) ?? table.name);
    const about = element("span", { class: "chat-about" }, element("code", {}, fullName(table)), " · ", columnCount(table));
    const button = element("button", { type: "button", class: "chat-open" }, name, about);
    button.addEventListener("click", () => this.#describe(fullName(table)));
    return element("li", { class: "chat" }, button);
  }

  #samples() {
    const questions = this.#examples();
    if (questions.length === 0) return [];
    const items = questions.map((question) => {
      const button = element("button", { type: "button", class: "offer", dir: "auto" }, question);
      button.addEventListener("click", () => {
        this.#dialog.close();
        this.#onAsk(question);
      });
      return element("li", {}, button);
    });
    return [element("section", { class: "suggestions" }, label("examples_title", {}, "h3"), element("ul", { class: "offers" }, ...items))];
  }

  // --------------------------------------------------------------------------------------------------------- one table

  #describe(name) {
    this.#fetch(`schema/tables/${encodeURIComponent(name)}`, (table) => {
      const back = element("button", { type: "button", class: "quiet back" }, glyph("back"), label("schema_back"));
      back.addEventListener("click", () => {
        this.#list();
        this.#search.focus();
      });
      const title = element("h3", { class: "table-name", dir: "auto" }, calledBy(table) ?? table.name);
      const rows = table.row_estimate === null ? null : label("schema_rows", { count: groupThousands(String(table.row_estimate)) });
      const about = element("p", { class: "drawer-note" }, element("code", {}, fullName(table)), rows ? " · " : null, rows);
      const said = table.comment ? [element("p", { class: "table-comment", dir: "auto" }, table.comment)] : [];
      const columns = element("ul", { class: "columns" }, ...table.columns.map((column) => columnItem(column, table)));
      queueMicrotask(() => back.focus());
      return [back, title, about, ...said, columns];
    });
  }

  /** Shows the nodes that `render(data)` makes of the answer, or why there is none. */
  async #fetch(path, render) {
    const showing = (this.#showing += 1);
    this.#body.setAttribute("aria-busy", "true");
    try {
      const data = await request(this.#path(path));
      if (showing !== this.#showing) return;
      this.#body.replaceChildren(...render(data));
      this.#body.scrollTop = 0;
    } catch (refusal) {
      if (showing !== this.#showing) return;
      this.#body.replaceChildren();
      this.#say(refusal.envelope, () => this.#fetch(path, render));
    }
    this.#body.setAttribute("aria-busy", "false");
  }

  #say(envelope, again) {
    const box = failureBox(envelope, () => {
      box.remove();
      again();
    });
    this.#body.append(box);
  }
}

function columnItem(column, table) {
  const isKey = table.primary_key.includes(column.name);
  const head = element(
    "p",
    { class: "column-head" },
    element("strong", { dir: "auto" }, calledBy(column) ?? column.name),
    element("code", {}, column.name),
    element("span", { class: "column-type" }, column.type),
    isKey ? label("schema_key") : null,
  );
  const said = column.meaning?.description?.[language()] ?? column.comment;
  const isNew = said && said !== calledBy(column);
  return element("li", {}, head, isNew ? element("p", { class: "drawer-note", dir: "auto" }, said) : null, holds(column));
}

/** What is stored in the column, as far as the server shows it. */
function holds({ allowed, values, period }) {
  const note = element("p", { class: "drawer-note column-values", dir: "auto" });
  if (period) note.textContent = period.join(" – ");
  else if (allowed.length || values.length) {
    const known = allowed.length ? allowed : values;
    const more = known.length > MOST_VALUES ? "…" : "";
    note.textContent = known.slice(0, MOST_VALUES).map(String).join(" · ") + more;
  } else return null;
  return note;
}

function calledBy({ meaning }) {
  return meaning?.names?.[language()]?.[0];
}

function fullName({ schema, name }) {
  return schema === "public" ? name : `${schema}.${name}`;
}

function columnCount({ column_count: count }) {
  const node = element("span");
  setLabel(node, "schema_columns", { count });
  return node;
}
