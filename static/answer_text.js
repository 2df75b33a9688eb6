/** An answer's text as paragraphs, and as lists where its lines say so. */

import { element } from "./dom.js";

const ITEM = /^[-*•] +/;

/** Nodes for `text`; lines that begin with `- ` are items of a list. Nothing else is read as markup. */
export function answerText(text) {
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
