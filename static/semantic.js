/** The semantic file in a drawer for reviewers: its entries are searched, and changes of them proposed. */

import { at } from "./address.js";
import { request } from "./api.js";
import { closable } from "./dialogs.js";
import { element, glyph, setTranslatedAttribute } from "./dom.js";
import { failureBox } from "./failure.js";
import "./semantic_texts.js";
import { label } from "./texts.js";

const SECTIONS = new Set(["tables", "metrics", "reports"]); // those that have a name in both languages
const ENTRY = /^ {2}[^\s#][^:]*:/; // of tables, metrics or reports
const SECTION = /^[^\s#][^:]*:/;
const MOST_NOTE = 500;
const MARKS = { "+": "diff-added", "-": "diff-removed", "@": "diff-place" };

let drawer = null;

/** Opens it; `path(address)` adds to an address which database is asked. */
export function openSemantic(path) {
  drawer ??= new SemanticDrawer();
  drawer.open(path);
}

class SemanticDrawer {
  #dialog;
  #search = element("input", { type: "search", class: "drawer-search", autocomplete: "off" });
  #body = element("div", { class: "drawer-body" });
  #path;
  #revision = null;
  #user = null;
  #opening = 0; // counts openings, so that a late answer for an earlier one is not shown

  constructor() {
    document.head.append(element("link", { rel: "stylesheet", href: at("static/semantic.css") }));
    for (const attribute of ["placeholder", "aria-label"]) setTranslatedAttribute(this.#search, attribute, "semantic_search");
    const close = element("button", { type: "button", class: "quiet icon close" }, glyph("failed"));
    setTranslatedAttribute(close, "aria-label", "close");
    const title = label("semantic_title", {}, "h2");
    title.id = "semantic-title";
    const head = element("header", { class: "drawer-head" }, title, close);
    this.#dialog = element("dialog", { class: "drawer", id: "semantic", "aria-labelledby": title.id }, head, this.#search, this.#body);
    document.body.append(this.#dialog);
    closable(this.#dialog);
    this.#search.addEventListener("input", () => this.#filter());
  }

  open(path) {
    this.#path = path;
    this.#search.value = "";
    this.#dialog.showModal();
    this.#body.replaceChildren();
    this.#load();
  }

  async #load() {
    const opening = (this.#opening += 1);
    this.#body.setAttribute("aria-busy", "true");
    try {
      const [file, { proposals }, me] = await Promise.all([
        request(this.#path("semantic")),
        request(this.#path("semantic/proposals")),
        request("me", { asksForKey: false }),
      ]);
      if (opening !== this.#opening) return;
      this.#revision = file.revision;
      this.#user = me.user_id ?? "anonymous";
      this.#show(file, proposals);
    } catch (refusal) {
      if (opening === this.#opening) this.#body.replaceChildren(...this.#unread(refusal));
    }
    this.#body.setAttribute("aria-busy", "false");
  }

  #unread({ envelope }) {
    return envelope.code === 404 ? [label("semantic_none", {}, "p")] : [failureBox(envelope, () => this.#load())];
  }

  #show({ name, text, problems }, proposals) {
    const about = note("semantic_about", { name });
    const wrong = problems.map((problem) => note("semantic_problem", problem, "drawer-note semantic-problem"));
    const entries = entriesOf(text).map((entry) => this.#entry(entry));
    const count = note("semantic_found", { count: entries.length });
    const list = element("div", { class: "semantic-entries" }, ...entries);
    this.#body.replaceChildren(about, ...wrong, ...this.#proposals(proposals), count, list, this.#adding());
    this.#filter();
  }

  #filter() {
    const wanted = this.#search.value.trim().toLocaleLowerCase();
    const entries = [...this.#body.querySelectorAll(".semantic-entry")];
    for (const entry of entries) {
      entry.hidden = !entry.dataset.text.includes(wanted);
      if (wanted && !entry.hidden && entries.length > 1) entry.open = !entry.dataset.name.includes(wanted);
    }
    const count = entries.filter((entry) => !entry.hidden).length;
    const shown = this.#body.querySelector("[data-text=semantic_found]");
    shown?.replaceWith(note("semantic_found", { count }));
  }

  // ------------------------------------------------------------------------------------------------------------ entries

  #entry({ section, name, lines }) {
    const text = lines.join("\n");
    const called = name === null ? label("semantic_head") : element("code", {}, name);
    const said = SECTIONS.has(section) ? label(`semantic_section_${section}`) : section;
    const where = section === null ? null : element("span", { class: "semantic-section" }, said);
    const shown = element("pre", { tabindex: "0" }, element("code", {}, text));
    const place = element("div", {}, shown);
    const edit = element("button", { type: "button", class: "secondary" }, glyph("rename"), label("semantic_edit"));
    edit.addEventListener("click", () => this.#edit(place, text, [shown, edit], edit));
    place.append(edit);
    const entry = element("details", { class: "semantic-entry" }, element("summary", {}, called, where), place);
    entry.dataset.text = text.toLocaleLowerCase();
    entry.dataset.name = (name ?? "").toLocaleLowerCase();
    return entry;
  }

  /** A place for lines at the end of the file. */
  #adding() {
    const place = element("div", { class: "semantic-adding" });
    const add = element("button", { type: "button", class: "secondary" }, glyph("new"), label("semantic_add"));
    add.addEventListener("click", () => this.#edit(place, "", [add], add));
    place.append(add);
    return place;
  }

  /** Lets the lines be changed in `place`, which has `usual` again afterwards. */
  #edit(place, before, usual, opener) {
    const area = element("textarea", { class: "code", spellcheck: "false", rows: Math.min(24, before.split("\n").length + 2), required: true });
    setTranslatedAttribute(area, "aria-label", "semantic_lines");
    area.value = before;
    const why = element("input", { maxlength: MOST_NOTE, autocomplete: "off", dir: "auto" });
    for (const attribute of ["placeholder", "aria-label"]) setTranslatedAttribute(why, attribute, "semantic_note");
    const send = element("button", { type: "submit", class: "primary" }, label("semantic_send"));
    const cancel = element("button", { type: "button", class: "secondary" }, label("cancel"));
    const form = element("form", { class: "semantic-form" }, area, why, element("div", { class: "form-buttons" }, send, cancel));
    const leave = () => {
      place.replaceChildren(...usual);
      opener.focus();
    };
    cancel.addEventListener("click", leave);
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.preventDefault(); // it would close the drawer, and what was written with it
      leave();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#propose(form, { before, after: area.value, note: why.value.trim() });
    });
    place.replaceChildren(form);
    area.focus();
  }

  async #propose(form, body) {
    setDisabled(form, true);
    form.querySelector(".failure")?.remove();
    try {
      await request(this.#path("semantic/proposals"), { method: "POST", body: { ...body, revision: this.#revision } });
    } catch (refusal) {
      setDisabled(form, false);
      form.append(failureBox(refusal.envelope, () => this.#propose(form, body)));
      return;
    }
    await this.#load();
    const said = note("semantic_sent", {}, "drawer-note semantic-sent");
    said.setAttribute("role", "status");
    this.#body.prepend(said);
    said.scrollIntoView({ block: "nearest" });
    this.#search.focus();
  }

  // ---------------------------------------------------------------------------------------------------------- proposals

  #proposals(proposals) {
    if (proposals.length === 0) return [];
    const items = proposals.map((proposal) => this.#proposal(proposal));
    const open = proposals.filter(({ state }) => state === "open").length;
    const summary = element("summary", {}, label("semantic_proposals"), ` (${open}/${proposals.length})`);
    return [element("details", { class: "semantic-proposals", open: open > 0 }, summary, element("ul", { class: "reviews" }, ...items))];
  }

  #proposal(proposal) {
    const { state, author, created_at: created, note: why, diff, settled_by: by, reason } = proposal;
    const settled = label(`semantic_${state}`, { by, reason });
    const head = element("p", { class: "drawer-note" }, label("semantic_by", { author, at: created }), " · ", settled);
    const said = why ? [element("p", { class: "review-question", dir: "auto" }, why)] : [];
    const item = element("li", { class: "review" }, ...said, head, element("pre", { tabindex: "0" }, ...diffLines(diff)));
    if (state !== "open") return item;
    item.append(note("semantic_how", { id: proposal.proposal_id }));
    if (author === this.#user) item.append(this.#withdrawButton(proposal, item));
    return item;
  }

  #withdrawButton({ proposal_id: id }, item) {
    const button = element("button", { type: "button", class: "secondary" }, label("semantic_withdraw"));
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        await request(this.#path(`semantic/proposals/${encodeURIComponent(id)}`), { method: "DELETE" });
        await this.#load();
        this.#search.focus();
      } catch (refusal) {
        button.disabled = false;
        item.append(failureBox(refusal.envelope, () => button.click()));
      }
    });
    return button;
  }
}

/** The file's entries `{section, name, lines}`: what stands before the first one has no name, comments go with what follows. */
function entriesOf(text) {
  const entries = [{ section: null, name: null, lines: [] }];
  let section = null;
  let waiting = []; // blank lines and comments
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const isEntry = ENTRY.test(line) && section !== null;
    if (SECTION.test(line)) section = line.slice(0, line.indexOf(":"));
    if (/^\s*(#.*)?$/.test(line)) {
      waiting.push(line);
      continue;
    }
    if (isEntry) entries.push({ section, name: line.slice(0, line.indexOf(":")).trim(), lines: [] });
    entries.at(-1).lines.push(...waiting, line);
    waiting = [];
  }
  return entries.filter(({ lines }) => lines.length > 0).map(withoutBlanks);
}

function withoutBlanks({ lines, ...entry }) {
  const first = lines.findIndex((line) => line.trim() !== "");
  return { ...entry, lines: lines.slice(first) };
}

function diffLines(diff) {
  const lines = diff.replace(/\n$/, "").split("\n").slice(2); // the two first name the file
  return lines.map((line) => element("span", { class: `diff-line ${MARKS[line[0]] ?? ""}` }, `${line}\n`));
}

function note(key, values = {}, className = "drawer-note") {
  const node = label(key, values, "p");
  node.className = className;
  return node;
}

function setDisabled(form, isDisabled) {
  for (const control of form.querySelectorAll("button, input, textarea")) control.disabled = isDisabled;
}
