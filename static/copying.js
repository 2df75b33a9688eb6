/** Buttons that copy text. */

import { element, glyph } from "./dom.js";
import { label, setLabel } from "./texts.js";

const CONFIRMATION_MS = 2000;

/**
 * A button named by the text of that key that copies what `text()` gives. If the clipboard can't be used (plain HTTP,
 * no permission), `select()` marks the text for the reader to copy.
 */
export function copyButton(key, text, select = null) {
  const name = label(key);
  const button = element("button", { type: "button", class: "quiet copy", "aria-live": "polite" }, glyph("copy"), name);
  button.addEventListener("click", async () => {
    setLabel(name, await copied(text(), select));
    setTimeout(() => setLabel(name, key), CONFIRMATION_MS);
  });
  return button;
}

async function copied(text, select) {
  try {
    await navigator.clipboard.writeText(text);
    return "copied";
  } catch {
    if (!select) return "copy_impossible";
    select();
    return "copy_failed";
  }
}
