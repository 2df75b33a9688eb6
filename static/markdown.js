/** Markdown of models as elements. It is read by marked, but never turned into HTML: markup in it is shown as text. */

import { lexer } from "./vendor/marked-18.2.1.esm.js";
import { element } from "./dom.js";

const SAFE_LINK = /^(https?:|mailto:)/i;
const INLINE = { strong: "strong", em: "em", del: "del" };

/** Nodes for `text`. */
export function markdown(text) {
  return blocks(lexer(text, { gfm: true, breaks: true }));
}

const BLOCKS = {
  space: () => [],
  hr: () => [element("hr")],
  heading: ({ depth, tokens }) => [element(`h${Math.min(depth + 2, 6)}`, {}, ...inlines(tokens))],
  paragraph: ({ tokens }) => [element("p", { dir: "auto" }, ...inlines(tokens))],
  blockquote: ({ tokens }) => [element("blockquote", {}, ...blocks(tokens))],
  code: ({ text }) => [element("pre", { tabindex: "0" }, element("code", {}, text))],
  list: listOf,
  table: tableOf,
  text: ({ tokens, text }) => (tokens ? inlines(tokens) : [text]),
};

function blocks(tokens) {
  return tokens.flatMap((token) => BLOCKS[token.type]?.(token) ?? [token.raw]);
}

function inlines(tokens) {
  return tokens.flatMap(inline);
}

function inline(token) {
  if (token.type === "br") return [element("br")];
  if (token.type === "codespan") return [element("code", {}, token.text)];
  if (token.type === "escape") return [token.text];
  if (token.type === "link") return [link(token)];
  if (token.type === "checkbox") return [token.checked ? "☑ " : "☐ "];
  if (INLINE[token.type]) return [element(INLINE[token.type], {}, ...inlines(token.tokens))];
  if (token.type === "text" && token.tokens) return inlines(token.tokens);
  return [token.type === "text" ? token.text : token.raw];
}

/** Other schemes, such as `javascript:`, and pictures, which would be fetched from elsewhere, stay text. */
function link({ href, raw, tokens }) {
  if (!SAFE_LINK.test(href)) return raw;
  return element("a", { href, rel: "noopener noreferrer nofollow", target: "_blank" }, ...inlines(tokens));
}

function listOf({ ordered, start, items }) {
  const made = items.map(({ tokens }) => element("li", {}, ...blocks(tokens)));
  const first = ordered && start !== 1 ? start : null;
  return [element(ordered ? "ol" : "ul", { start: first, dir: "auto" }, ...made)];
}

function tableOf({ header, rows, align }) {
  const cell = (tag) => ({ tokens }, at) => element(tag, { class: align[at] === "right" ? "number" : null }, ...inlines(tokens));
  const head = element("thead", {}, element("tr", {}, ...header.map(cell("th"))));
  const body = element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell("td")))));
  return [element("div", { class: "table-scroll", tabindex: "0", role: "group", "aria-label": "table" }, element("table", {}, head, body))];
}
