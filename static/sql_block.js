/** A statement with a button that copies it. */

import { element, glyph } from "./dom.js";
import { label, setLabel } from "./texts.js";

const CONFIRMATION_MS = 2000;

/** `<section>` with `sql` under the heading of that key. */
export function sqlBlock(sql, title) {
  const code = element("code", {}, sql);
  const text = label("copy");
  const button = element("button", { type: "button", class: "quiet copy", "aria-live": "polite" }, glyph("copy"), text);
  button.addEventListener("click", async () => confirm(text, await copy(code)));
  return element(
    "section",
    { class: "sql" },
    element("header", { class: "block-head" }, label(title, {}, "h3"), button),
    element("pre", { tabindex: "0" }, code),
  );
}

function confirm(text, outcome) {
  setLabel(text, outcome);
  setTimeout(() => setLabel(text, "copy"), CONFIRMATION_MS);
}

/** Copies the code; if the clipboard can't be used (plain HTTP, no permission), selects it for the reader to copy. */
async function copy(code) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    return "copied";
  } catch {
    getSelection().selectAllChildren(code);
    return "copy_failed";
  }
}
