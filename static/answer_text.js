/** An answer's text: Markdown where it has any, else as paragraphs, and as lists where its lines say so. */

import { element } from "./dom.js";

const ITEM = /^[-*•] +/;
// A heading, a fence, a quote, a numbered item, a row of a table, an indented item, strong or code, a link.
const HAS_MARKDOWN = /^#{1,6} |^```|^> |^\d+[.)] |^\|.*\|$|^\s+[-*+] |\*\*\S|`[^`\n]+`|\]\(https?:/m;

/** Nodes for `text`. Its Markdown replaces the plain text as soon as what reads it is loaded. */
export function answerText(text) {
  const nodes = plainText(text);
  if (!HAS_MARKDOWN.test(text)) return nodes;
  const place = element("div", { class: "answer-text markdown", dir: "auto" }, ...nodes);
  import("./markdown.js").then(
    ({ markdown }) => place.replaceChildren(...markdown(text)),
    () => {}, // it stays plain text
  );
  return [place];
}

/** Lines that begin with `- ` are items of a list. */
function plainText(text) {
  const nodes = [];
  for (const line of text.split("\n")) {
    const isItem = ITEM.test(line);
    const last = nodes.at(-1);
    if (isItem && last?.tagName === "UL") last.append(item(line));
    else if (isItem) nodes.push(element("ul", { class: "answer-text", dir: "auto" }, item(line)));
    else if (last?.tagName === "P") last.append(`\n${line}`);
    else nodes.push(element("p", { class: "answer-text", dir: "auto" }, line));
  }
  return nodes.filter((node) => node.textContent.trim() !== "");
}

function item(line) {
  return element("li", {}, line.replace(ITEM, ""));
}
