/** Cards that the operator's renderers add to an answer. Their texts are shown as text, whatever they hold. */

import { element } from "./dom.js";

/** A section with them; nothing where there are none. */
export function cardList(cards) {
  if (!cards?.length) return [];
  return [element("section", { class: "cards" }, ...cards.map(card))];
}

function card({ title, text, tone, facts = [], share = null, link = null }) {
  const heading = link ? element("a", { href: link, rel: "noopener noreferrer", target: "_blank" }, title) : title;
  return element(
    "article",
    { class: "card", "data-tone": tone },
    element("h3", {}, heading),
    share === null ? null : element("progress", { max: "1", value: String(share), "aria-label": title }),
    text ? element("p", {}, text) : null,
    facts.length ? factList(facts) : null,
  );
}

function factList(facts) {
  const pairs = facts.flatMap(({ label, value }) => [element("dt", {}, label), element("dd", {}, value)]);
  return element("dl", {}, ...pairs);
}
