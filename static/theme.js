/** Light, dark, or as the system is. Dark colours are a style sheet of their own, which is on or off (early.js). */

import { onThisDevice } from "./memory.js";

const NAME = "theme";
const THEMES = ["light", "dark"];
const listeners = new Set();

/** `light`, `dark`, or the empty string for the system's. */
export function theme() {
  const kept = onThisDevice.recall(NAME);
  return THEMES.includes(kept) ? kept : "";
}

/** Shows the page in that theme, and remembers it. */
export function setTheme(chosen) {
  onThisDevice.remember(NAME, chosen);
  globalThis.showTheme(chosen);
  tell();
}

/** Calls `listener` whenever colours change; returns what ends that. */
export function onColours(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell() {
  for (const listener of listeners) listener();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);
