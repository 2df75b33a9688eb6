/** The heading of a turn: its question, folded when it is long. */

import { element } from "./dom.js";
import { label, setLabel } from "./texts.js";

const MAX_LINES = 6;
const MAX_CHARS = 400;

/** Nodes: the heading, and a button that unfolds it where it is folded. */
export function questionHead(question) {
  const heading = element("h2", { class: "question", dir: "auto" }, question);
  if (question.length <= MAX_CHARS && question.split("\n").length <= MAX_LINES) return [heading];
  heading.classList.add("folded");
  const name = label("show_all");
  const button = element("button", { type: "button", class: "quiet unfold", "aria-expanded": "false" }, name);
  button.addEventListener("click", () => {
    const isFolded = heading.classList.toggle("folded");
    button.setAttribute("aria-expanded", String(!isFolded));
    setLabel(name, isFolded ? "show_all" : "show_less");
  });
  return [heading, button];
}
