/** A statement with a button that copies it. */

import { copyButton } from "./copying.js";
import { element } from "./dom.js";
import { label } from "./texts.js";

/** `<section>` with `sql` under the heading of that key. */
export function sqlBlock(sql, title) {
  const code = element("code", {}, sql);
  const button = copyButton("copy", () => sql, () => getSelection().selectAllChildren(code));
  return element(
    "section",
    { class: "sql" },
    element("header", { class: "block-head" }, label(title, {}, "h3"), button),
    element("pre", { tabindex: "0" }, code),
  );
}
