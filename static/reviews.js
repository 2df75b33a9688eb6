/** What was learnt and waits for a reviewer, in a drawer: examples and lessons, each with the verdicts it may get. */

import { request } from "./api.js";
import { closable } from "./dialogs.js";
import { element, glyph } from "./dom.js";
import { failureBox } from "./failure.js";
import { highlighted } from "./sql_highlight.js";
import { label } from "./texts.js";
import "./drawer_texts.js";

const AT_ONCE = 30;
const KINDS = {
  example: { path: "knowledge/examples", verdicts: ["approve", "certify", "reject"] },
  lesson: { path: "knowledge/lessons", verdicts: ["approve", "reject"] },
};
const PENDING = { trust: "candidate,personal", state: "active" };

/** `dialog` holds `.drawer-body`; `path(address)` adds to an address which database is asked. */
export class Reviews {
  #dialog;
  #body;
  #path;
  #opening = 0; // counts openings, so that a late list for an earlier one is not shown

  constructor(dialog, { path = (address) => address } = {}) {
    this.#dialog = dialog;
    this.#path = path;
    this.#body = dialog.querySelector(".drawer-body");
    closable(dialog);
  }

  open() {
    this.#opening += 1;
    this.#dialog.showModal();
    const sections = Object.keys(KINDS).map((kind) => {
      const list = element("ul", { class: "reviews", "aria-busy": "true" });
      this.#add(kind, list, null);
      return element("section", {}, label(`review_${kind}s`, {}, "h3"), list);
    });
    this.#body.replaceChildren(this.#semanticButton(), ...sections);
  }

  /** What the database means to people is reviewed in a drawer of its own. */
  #semanticButton() {
    const button = element("button", { type: "button", class: "secondary to-semantic" }, glyph("report"), label("review_semantic"));
    button.addEventListener("click", async () => {
      const { openSemantic } = await import("./semantic.js");
      this.#dialog.close();
      openSemantic(this.#path);
    });
    return button;
  }

  async #add(kind, list, cursor) {
    const opening = this.#opening;
    const query = new URLSearchParams({ ...PENDING, limit: AT_ONCE, ...(cursor ? { cursor } : {}) });
    try {
      const page = await request(`${KINDS[kind].path}?${query}`);
      if (opening === this.#opening) this.#show(kind, list, page);
    } catch (refusal) {
      if (opening === this.#opening) this.#say(list, refusal.envelope, () => this.#add(kind, list, cursor));
    }
    list.setAttribute("aria-busy", "false");
  }

  #show(kind, list, page) {
    list.append(...page[`${kind}s`].map((item) => this.#item(kind, item)));
    if (page.next_cursor) {
      const more = element("button", { type: "button", class: "secondary" }, label("review_more"));
      more.addEventListener("click", () => {
        more.parentElement.remove();
        this.#add(kind, list, page.next_cursor);
      });
      list.append(element("li", {}, more));
    }
    sayWhenEmpty(list);
  }

  #item(kind, item) {
    const node = element("li", { class: "review" }, element("p", { class: "review-question", dir: "auto" }, item.question ?? ""));
    const said = [item.root_cause, item.avoidance_hint].filter(Boolean).map((text) => element("p", { class: "drawer-note", dir: "auto" }, text));
    const sql = sqlOf(item);
    const by = label("review_by", { author: item.author ?? "—", at: item.created_at }, "p");
    by.className = "drawer-note";
    const buttons = KINDS[kind].verdicts.map((verdict) => this.#verdictButton(kind, item, verdict, node));
    node.append(...aboutDraft(item), ...said, ...sql, by, element("div", { class: "form-buttons" }, ...buttons));
    return node;
  }

  #verdictButton(kind, item, verdict, node) {
    const button = element("button", { type: "button", class: verdict === "reject" ? "danger" : "secondary" }, label(`review_${verdict}`));
    button.addEventListener("click", () => this.#decide(kind, item, verdict, node));
    return button;
  }

  async #decide(kind, item, verdict, node) {
    const path = `${KINDS[kind].path}/${encodeURIComponent(item[`${kind}_id`])}/${verdict}`;
    const body = kind === "example" ? { trust: item.trust } : {}; // what the reviewer saw
    setDisabled(node, true);
    try {
      await request(path, { method: "POST", body });
      const list = node.parentElement;
      const next = (node.nextElementSibling ?? node.previousElementSibling)?.querySelector("button");
      node.remove();
      sayWhenEmpty(list);
      (next ?? this.#dialog.querySelector(".close")).focus();
    } catch (refusal) {
      setDisabled(node, false);
      this.#say(node, refusal.envelope, () => this.#decide(kind, item, verdict, node));
    }
  }

  #say(place, envelope, again) {
    place.querySelector(":scope > .failure")?.remove();
    const box = failureBox(envelope, () => {
      box.remove();
      again();
    });
    place.append(box);
  }
}

/** Says that it was learnt of a drafted transformation. */
function aboutDraft({ etl }) {
  if (!etl) return [];
  const said = etl.target ? label("review_etl", { target: etl.target }, "p") : label("review_etl_lesson", {}, "p");
  said.className = "drawer-note";
  return [said];
}

/** The models of a draft, each folded away; else the statement, if there is one. */
function sqlOf({ etl, sql }) {
  if (etl?.code) return etl.code.map(nodeSql);
  return sql ? [shownSql(sql)] : [];
}

function nodeSql({ node, sql }) {
  return element("details", { class: "review-node" }, element("summary", {}, element("code", {}, node)), shownSql(sql));
}

function shownSql(sql) {
  return element("pre", { tabindex: "0" }, element("code", {}, ...highlighted(sql)));
}

function setDisabled(node, isDisabled) {
  for (const button of node.querySelectorAll("button")) button.disabled = isDisabled;
}

function sayWhenEmpty(list) {
  if (list.childElementCount === 0) list.append(element("li", { class: "drawer-note" }, label("review_none")));
}
