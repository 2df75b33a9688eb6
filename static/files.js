/** The reader's files, in a drawer: brought, checked, loaded, replaced, asked. */

import { Refusal, request } from "./api.js";
import { closable } from "./dialogs.js";
import { element } from "./dom.js";
import { failureBox } from "./failure.js";
import { draftTables } from "./file_form.js";
import { sendFile } from "./file_upload.js";
import { label, language, translate } from "./texts.js";
import "./files_texts.js";

const KINDS = ".csv,.tsv,.txt,.xlsx,.xlsm,.zip";

/** `onChange()` is told when tables come or go, `onAsk()` when the reader wants to ask them. */
export class Files {
  #dialog;
  #body;
  #onChange;
  #onAsk;
  #zone;
  #state = element("div", { class: "file-state", role: "status" });
  #drafts = element("div");
  #list = element("div");
  #sending = new AbortController();
  #listing = Promise.resolve();
  #listings = 0;

  constructor(dialog, { onChange, onAsk }) {
    this.#dialog = dialog;
    this.#body = dialog.querySelector(".drawer-body");
    this.#onChange = onChange;
    this.#onAsk = onAsk;
    closable(dialog);
    dialog.addEventListener("close", () => this.#sending.abort());
  }

  open() {
    this.#sending = new AbortController();
    this.#zone = fileChooser("files_drop", (file) => this.bring(file), "file-zone");
    this.#body.replaceChildren(this.#zone, this.#state, this.#drafts, this.#list);
    // What was listed when the drawer was last open may be gone: nothing of it is offered again.
    for (const part of [this.#state, this.#drafts, this.#list]) part.replaceChildren();
    if (!this.#dialog.open) this.#dialog.showModal();
    void this.#show();
  }

  /** Sends a file, and shows its draft; `path` says what becomes of it. */
  async bring(file, path = "files") {
    const bar = element("progress", { max: 1, value: 0, "aria-label": file.name });
    const said = element("p", {}, label("files_sending", { percent: 0 }));
    this.#state.replaceChildren(element("p", { dir: "auto" }, file.name), bar, said);
    const onProgress = (part) => {
      bar.value = part;
      said.replaceChildren(part < 1 ? label("files_sending", { percent: Math.floor(100 * part) }) : label("files_reading"));
    };
    const { signal } = this.#sending;
    await this.#listing; // or it would come later, and not have the new draft
    if (signal.aborted) return;
    const envelope = await sendFile(path, file, { onProgress, signal });
    if (signal.aborted) return;
    if (!envelope.success) {
      this.#state.replaceChildren(failureBox(envelope, () => this.bring(file, path)));
      return;
    }
    this.#state.replaceChildren();
    this.#drafts.prepend(this.#draftForm(envelope.data));
    this.#drafts.querySelector("input, select")?.focus();
  }

  /** Lists drafts and files as they are now, in place of what was asked for before. */
  #show() {
    this.#listing = this.#askForList();
    return this.#listing;
  }

  async #askForList() {
    this.#listings += 1;
    const number = this.#listings;
    try {
      const [listed, me] = await Promise.all([request(`files?lang=${language()}`), request("me")]);
      if (number < this.#listings) return;
      this.#drafts.replaceChildren(...listed.drafts.map((draft) => this.#draftForm(draft)));
      const items = listed.files.map((file) => this.#fileItem(file, me.groups));
      const none = element("p", { class: "drawer-note" }, label("files_none"));
      this.#list.replaceChildren(label("files_loaded", {}, "h3"), ...(items.length ? items : [none]));
    } catch (refusal) {
      this.#complain(refusal, () => this.#show());
    }
  }

  #complain(refusal, again) {
    if (!(refusal instanceof Refusal)) throw refusal;
    this.#state.replaceChildren(failureBox(refusal.envelope, again));
    this.#state.scrollIntoView({ block: "nearest" });
  }

  // -------------------------------------------------------------------------------------------------------- drafts

  #draftForm(draft) {
    const tables = draftTables(draft);
    const again = button("files_read_again", "secondary");
    const discard = button("files_discard", "secondary");
    const form = element(
      "form",
      { class: "file-draft" },
      element("h3", { dir: "auto" }, label("files_check", { name: draft.name })),
      element("p", { class: "help" }, label("files_check_help")),
      ...tables.nodes,
      element("div", { class: "form-buttons" }, button("files_confirm", "primary", "submit"), again, discard),
    );
    again.addEventListener("click", () => this.#correct(draft, tables.corrections(), form));
    discard.addEventListener("click", () => this.#discard(draft, form));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#confirm(draft, tables.corrections(), form);
    });
    return form;
  }

  async #correct(draft, corrections, form) {
    await this.#busy(form, "files_reading", async () => {
      const body = { tables: corrections, lang: language() };
      const corrected = this.#draftForm(await request(`files/${draft.id}`, { method: "PATCH", body }));
      form.replaceWith(corrected);
      corrected.querySelector("input, select")?.focus();
    });
  }

  async #confirm(draft, corrections, form) {
    await this.#busy(form, "files_loading", async () => {
      const body = { tables: corrections, lang: language() };
      const file = await request(`files/${draft.id}/confirm`, { method: "POST", body });
      form.remove();
      await this.#show();
      this.#onChange();
      this.#report(file);
    });
  }

  /** Says what became of a file's tables, beside the file. */
  #report(file) {
    const item = this.#itemOf(file);
    for (const table of file.loaded) {
      const said = [
        ...table.left_out.map((one) => label("files_left_out", one)),
        ...table.notes,
      ].map((text) => element("p", { class: "file-note file-problem" }, text));
      item?.append(...said);
    }
    item?.querySelector("button")?.focus();
  }

  async #discard(draft, form) {
    await this.#busy(form, "files_reading", async () => {
      await request(`files/${draft.id}`, { method: "DELETE" });
      form.remove();
      this.#zone.querySelector("input").focus();
    });
  }

  async #busy(form, text, act) {
    const controls = [...form.querySelectorAll("button, input, select")];
    for (const control of controls) control.disabled = true;
    this.#state.replaceChildren(element("p", {}, label(text)));
    try {
      await act();
      this.#state.replaceChildren();
    } catch (refusal) {
      this.#complain(refusal, () => this.#busy(form, text, act));
    } finally {
      for (const control of controls) control.disabled = false;
    }
  }

  // --------------------------------------------------------------------------------------------------------- files

  #fileItem(file, groups) {
    const tables = file.tables.map((table) =>
      element("li", { dir: "auto" }, element("code", {}, table.name), " · ", label("files_rows", { count: table.rows })),
    );
    const ask = button("files_ask", "primary");
    ask.addEventListener("click", () => {
      this.#dialog.close();
      this.#onAsk();
    });
    const item = element(
      "section",
      { class: "file-item", "data-file": file.id },
      element("h4", { dir: "auto" }, file.name),
      element("ul", {}, ...tables),
      element("div", { class: "form-buttons" }, ask),
    );
    if (file.is_own) this.#addOwnersChoices(item, file, groups);
    else item.append(element("p", { class: "file-note" }, label("files_of_others")));
    return item;
  }

  #itemOf(file) {
    return this.#list.querySelector(`[data-file="${file.id}"]`);
  }

  #addOwnersChoices(item, file, groups) {
    const remove = button("files_delete", "danger");
    remove.addEventListener("click", () => this.#remove(file, item));
    item.querySelector(".form-buttons").append(
      fileChooser("files_replace", (chosen) => this.bring(chosen, `files/${file.id}/replace`)),
      fileChooser("files_append", (chosen) => this.bring(chosen, `files/${file.id}/append`)),
      remove,
    );
    const known = [...new Set([...groups, ...file.groups])];
    if (known.length) item.append(this.#sharing(file, known));
  }

  #sharing(file, groups) {
    const boxes = groups.map((group) => {
      const box = element("input", { type: "checkbox", value: group });
      box.checked = file.groups.includes(group);
      return element("label", { class: "check" }, box, group);
    });
    const node = element("fieldset", { class: "file-sharing" }, label("files_share", {}, "legend"), ...boxes);
    node.addEventListener("change", () => {
      const chosen = [...node.querySelectorAll("input:checked")].map((box) => box.value);
      request(`files/${file.id}`, { method: "PATCH", body: { groups: chosen } }).catch((refusal) =>
        this.#complain(refusal, () => this.#show()),
      );
    });
    return node;
  }

  async #remove(file, item) {
    if (!confirm(translate("files_delete_question"))) return;
    await this.#busy(item, "files_reading", async () => {
      await request(`files/${file.id}`, { method: "DELETE" });
      await this.#listing; // it may have the file still, and put it there anew
      this.#itemOf(file)?.remove();
      this.#onChange();
      this.#zone.querySelector("input").focus();
    });
  }
}

function button(text, kind, type = "button") {
  return element("button", { type, class: kind }, label(text));
}

/** A button that lets the reader choose a file. */
function fileChooser(text, onFile, kind = "secondary file-choice") {
  const input = element("input", { type: "file", accept: KINDS, class: "visually-hidden" });
  input.addEventListener("change", () => {
    const [file] = input.files;
    input.value = "";
    if (file) onFile(file);
  });
  return element("label", { class: kind }, input, label(text));
}
