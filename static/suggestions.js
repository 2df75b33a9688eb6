/** Questions that the server offers, as buttons that ask them. */

import { element } from "./dom.js";
import { label } from "./texts.js";

/** The section under the heading of that key; none when there is nothing to offer. */
export function suggestions(key, questions, onAsk) {
  const known = (Array.isArray(questions) ? questions : []).filter((one) => typeof one === "string" && one !== "");
  if (known.length === 0) return [];
  const list = element("ul", { class: "offers" }, ...known.map((one) => element("li", {}, offer(one, onAsk))));
  return [element("section", { class: "suggestions" }, label(key, {}, "h3"), list)];
}

function offer(question, onAsk) {
  const button = element("button", { type: "button", class: "offer", dir: "auto" }, question);
  button.addEventListener("click", () => onAsk(question));
  return button;
}
