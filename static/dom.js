/**
 * Builds the page's elements. Children are text or nodes, never HTML, so that text from a database, a model or a user
 * can't become markup.
 */

import { translate } from "./texts.js";

const SVG = "http://www.w3.org/2000/svg";

/** `<tag …attributes>children</tag>`; an attribute that is false or null is left out, true means present. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

/** One of the drawings in the page (templates/index.html), in the colour of the text around it. */
export function glyph(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "glyph");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#icon-${name}`);
  svg.append(use);
  return svg;
}

/** An attribute whose text follows the language. */
export function setTranslatedAttribute(node, attribute, key) {
  node.setAttribute(`data-text-${attribute}`, key);
  node.setAttribute(attribute, translate(key));
}

/** Disables `button` while `act()` runs. The focus that it had comes back to it: a disabled button loses it. */
export async function whileDisabled(button, act) {
  const hadFocus = document.activeElement === button;
  button.disabled = true;
  try {
    return await act();
  } finally {
    button.disabled = false;
    if (hadFocus && isFocusLost()) button.focus({ preventScroll: true });
  }
}

/** Whether the focus is on nothing, because what had it was disabled or removed. */
export function isFocusLost() {
  return document.activeElement === null || document.activeElement === document.body;
}
