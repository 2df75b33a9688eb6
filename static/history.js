/** The reader's conversations in a drawer, where they can be opened, renamed and deleted. */

import { request } from "./api.js";
import { closable } from "./dialogs.js";
import { element, glyph, setTranslatedAttribute } from "./dom.js";
import { failureBox } from "./failure.js";
import { label } from "./texts.js";
import "./drawer_texts.js";

const AT_ONCE = 30;
const AT_ONCE_SEARCHED = 100;
const MAX_TITLE = 200;

/** `dialog` holds an element `.drawer-body` and a search field. */
export class History {
  #dialog;
  #body;
  #search;
  #conversation;
  #opening = 0; // counts openings, so that a late list for an earlier one is not shown

  constructor(dialog, conversation) {
    this.#dialog = dialog;
    this.#body = dialog.querySelector(".drawer-body");
    this.#conversation = conversation;
    this.#search = dialog.querySelector("input");
    closable(dialog);
    this.#search.addEventListener("input", () => this.#filter());
  }

  open() {
    this.#opening += 1;
    this.#search.value = "";
    this.#dialog.showModal();
    this.#body.replaceChildren();
    this.#add(null);
  }

  async #add(cursor) {
    const opening = this.#opening;
    const limit = this.#search.value ? AT_ONCE_SEARCHED : AT_ONCE;
    const query = new URLSearchParams({ limit, ...(cursor ? { cursor } : {}) });
    this.#body.setAttribute("aria-busy", "true");
    try {
      const page = await request(`conversations?${query}`);
      if (opening === this.#opening) this.#show(page);
    } catch (refusal) {
      if (opening === this.#opening) this.#say(refusal.envelope, () => this.#add(cursor));
    }
    if (opening === this.#opening) this.#body.setAttribute("aria-busy", "false");
  }

  #show(page) {
    this.#list().append(...page.conversations.map((one) => this.#item(one)));
    this.#body.querySelector(":scope > .drawer-foot")?.remove();
    if (page.next_cursor) this.#body.append(this.#moreButton(page.next_cursor));
    if (this.#list().childElementCount > 0) this.#body.append(this.#foot());
    this.#sayWhenEmpty();
    this.#filter();
  }

  /** Shows the titles that hold what is searched. Titles are few and short, so those not there yet are fetched for it. */
  #filter() {
    const wanted = this.#search.value.trim().toLocaleLowerCase();
    let found = 0;
    for (const item of this.#body.querySelectorAll(".chat")) {
      item.hidden = !item.dataset.title.includes(wanted);
      found += Number(!item.hidden);
    }
    const more = this.#body.querySelector(":scope > .more");
    if (wanted && more) more.click();
    this.#body.querySelector(":scope > .none-found")?.remove();
    if (wanted && !more && found === 0 && this.#body.querySelector(".chat")) {
      const note = label("none_found", {}, "p");
      note.className = "none-found";
      this.#body.append(note);
    }
  }

  // ---------------------------------------------------------------------------------------------------------- all of them

  #foot() {
    const button = element("button", { type: "button", class: "danger" }, label("delete_all"));
    const foot = element("div", { class: "drawer-foot" }, button);
    button.addEventListener("click", () => this.#showDeletingAll(foot));
    return foot;
  }

  #showDeletingAll(foot) {
    const remove = element("button", { type: "submit", class: "danger" }, label("delete_all"));
    const back = element("button", { type: "button", class: "secondary" }, label("cancel"));
    const form = element("form", { class: "chat-form" }, label("delete_all_question", {}, "p"), remove, back);
    const leave = () => {
      const fresh = this.#foot();
      foot.replaceWith(fresh);
      fresh.querySelector("button").focus();
    };
    back.addEventListener("click", leave);
    onEscape(form, leave);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#deleteAll();
    });
    foot.replaceChildren(form);
    back.focus(); // not on what can't be undone
  }

  async #deleteAll() {
    try {
      await request("conversations", { method: "DELETE" });
    } catch ({ envelope }) {
      this.#say(envelope, () => this.#deleteAll());
      return;
    }
    this.#body.replaceChildren();
    this.#sayWhenEmpty();
    this.#conversation.startOver();
    this.#dialog.querySelector(".close").focus();
  }

  /** Shows a failure at the end of the drawer; its retry button calls `again`. */
  #say(envelope, again) {
    this.#body.querySelector(":scope > .failure")?.remove();
    const box = failureBox(envelope, () => {
      box.remove();
      again();
    });
    this.#body.append(box);
    box.scrollIntoView({ block: "nearest" });
  }

  #list() {
    const list = this.#body.querySelector("ul") ?? element("ul", { class: "chats" });
    if (!list.isConnected) this.#body.append(list);
    return list;
  }

  #sayWhenEmpty() {
    const isEmpty = this.#list().childElementCount === 0 && !this.#body.querySelector(":scope > .secondary");
    if (isEmpty) this.#body.replaceChildren(label("no_conversations", {}, "p"));
  }

  #moreButton(cursor) {
    const button = element("button", { type: "button", class: "secondary more" }, label("more_conversations"));
    button.addEventListener("click", () => {
      button.remove();
      this.#add(cursor);
    });
    return button;
  }

  // ------------------------------------------------------------------------------------------------ one conversation

  #item(conversation) {
    const isCurrent = conversation.conversation_id === this.#conversation.id;
    const item = element("li", { class: "chat", "aria-current": isCurrent ? "true" : null });
    this.#showLine(item, conversation);
    return item;
  }

  #showLine(item, conversation) {
    const title = element("span", { class: "chat-title", dir: "auto" }, conversation.title);
    const about = label("conversation_about", { at: conversation.updated_at, count: conversation.turn_count });
    about.className = "chat-about";
    const open = element("button", { type: "button", class: "chat-open" }, title, about);
    open.addEventListener("click", () => this.#openConversation(conversation));
    const rename = iconButton("rename", () => this.#showNaming(item, conversation));
    const remove = iconButton("delete", () => this.#showDeleting(item, conversation));
    item.dataset.title = conversation.title.toLocaleLowerCase();
    item.replaceChildren(open, rename, remove);
  }

  #openConversation({ conversation_id: id }) {
    this.#dialog.close();
    if (id !== this.#conversation.id || this.#conversation.isEmpty) this.#conversation.open(id);
  }

  #showNaming(item, conversation) {
    const field = element("input", { value: conversation.title, maxlength: MAX_TITLE, required: true });
    setTranslatedAttribute(field, "aria-label", "conversation_title");
    const form = element("form", { class: "chat-form" }, field, submitButton("save"), this.#backButton(item, conversation));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#rename(item, conversation, field.value.trim());
    });
    onEscape(form, () => this.#leave(item, conversation));
    item.replaceChildren(form);
    field.focus();
    field.select();
  }

  async #rename(item, conversation, title) {
    if (!title) return;
    const again = () => this.#rename(item, conversation, title);
    if (!(await this.#change(item, conversation, { method: "PATCH", body: { title } }, again))) return;
    if (conversation.conversation_id === this.#conversation.id) this.#conversation.title = title;
    this.#showLine(item, { ...conversation, title });
    item.querySelector("button").focus();
  }

  #showDeleting(item, conversation) {
    const remove = element("button", { type: "submit", class: "danger" }, label("delete"));
    const title = element("strong", { dir: "auto" }, conversation.title);
    const question = element("p", {}, label("delete_question"), " ", title);
    const form = element("form", { class: "chat-form" }, question, remove, this.#backButton(item, conversation));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#delete(item, conversation);
    });
    onEscape(form, () => this.#leave(item, conversation));
    item.replaceChildren(form);
    remove.focus();
  }

  async #delete(item, conversation) {
    const again = () => this.#delete(item, conversation);
    if (await this.#change(item, conversation, { method: "DELETE" }, again)) this.#drop(item, conversation);
  }

  #drop(item, { conversation_id: id }) {
    const next = item.nextElementSibling ?? item.previousElementSibling;
    item.remove();
    if (id === this.#conversation.id) this.#conversation.startOver();
    (next?.querySelector("button") ?? this.#dialog.querySelector(".close")).focus();
    this.#sayWhenEmpty();
  }

  /** Sends a change; null when it failed, after telling the reader. Removes conversations that no longer exist. */
  async #change(item, conversation, options, again) {
    try {
      return await request(`conversations/${encodeURIComponent(conversation.conversation_id)}`, options);
    } catch ({ envelope }) {
      this.#showLine(item, conversation);
      if (envelope.code === 404) this.#drop(item, conversation);
      else this.#say(envelope, again);
      return null;
    }
  }

  #backButton(item, conversation) {
    const button = element("button", { type: "button", class: "secondary" }, label("cancel"));
    button.addEventListener("click", () => this.#leave(item, conversation));
    return button;
  }

  /** Closes the form of a conversation without doing anything. */
  #leave(item, conversation) {
    this.#showLine(item, conversation);
    item.querySelector("button").focus();
  }
}

function submitButton(key) {
  return element("button", { type: "submit", class: "secondary" }, label(key));
}

function iconButton(name, onClick) {
  const button = element("button", { type: "button", class: "quiet icon" }, glyph(name));
  for (const attribute of ["aria-label", "title"]) setTranslatedAttribute(button, attribute, name);
  button.addEventListener("click", onClick);
  return button;
}

/** Lets Escape in a form close the form, not the drawer. */
function onEscape(form, leave) {
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    event.preventDefault();
    event.stopPropagation();
    leave();
  });
}
