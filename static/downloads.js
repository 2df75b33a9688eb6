/** Downloads of all rows of an answer, or of one of the queries behind it. */

import { send } from "./api.js";
import { element, glyph, whileDisabled } from "./dom.js";
import { label, setLabel } from "./texts.js";

const LONGEST_NAME = 60; // characters of a question in a file's name

/** `question` and today's date as the name of a file of that format. */
export function fileName(question, format) {
  const words = question.replace(/[\s\\/:*?"<>|.\p{Cc}]+/gu, " ").trim();
  const day = new Date();
  const date = [day.getFullYear(), day.getMonth() + 1, day.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
  return `${[...words].slice(0, LONGEST_NAME).join("").trim() || "citu"} ${date}.${format}`;
}

/**
 * A button that downloads the rows as a file, which is named by the question; `callId` names one of the queries of an
 * answer that has several.
 */
export function fileButton(format, runId, { conversationId = null, callId = null, question = "" } = {}) {
  const name = { format: format.toUpperCase() };
  const text = label("download", name);
  const button = element("button", { type: "button", class: "quiet" }, glyph("download"), text);
  const take = async () => {
    const isDone = await download(format, runId, { conversation_id: conversationId, call_id: callId }, question || runId);
    setLabel(text, isDone ? "download" : "download_failed", name);
  };
  button.addEventListener("click", () => whileDisabled(button, take));
  return button;
}

/** Resolves to whether it was possible. */
async function download(format, runId, more, name) {
  const query = new URLSearchParams({ format, ...Object.fromEntries(Object.entries(more).filter(([, value]) => value)) });
  try {
    const response = await send(`runs/${encodeURIComponent(runId)}/export?${query}`);
    if (!response.ok) return false;
    offer(await response.blob(), fileName(name, format));
    return true;
  } catch {
    return false;
  }
}

/** Has the browser save `blob` as a file of that name. */
export function offer(blob, name) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
