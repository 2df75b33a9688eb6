/** Figures about the rows of an answer, in sentences, each with how it was computed. */

import { Refusal, request } from "./api.js";
import { element, glyph } from "./dom.js";
import { failureBox } from "./failure.js";
import { label, language } from "./texts.js";

/** A button, and the place where its sentences are shown. */
export function analysis(runId, conversationId) {
  const button = element("button", { type: "button", class: "quiet" }, glyph("bar"), label("analyze"));
  const place = element("div", { class: "analysis", role: "status" });
  const show = async () => {
    button.disabled = true;
    place.replaceChildren(label("analyzing", {}, "p"));
    place.replaceChildren(...(await found(runId, conversationId, show)));
    button.disabled = false;
  };
  button.addEventListener("click", show);
  return { button, place };
}

async function found(runId, conversationId, again) {
  const body = { lang: language(), ...(conversationId ? { conversation_id: conversationId } : {}) };
  try {
    const data = await request(`runs/${encodeURIComponent(runId)}/analyze`, { method: "POST", body });
    const notes = (data.warnings ?? []).map((text) => element("p", { class: "method" }, text));
    if (data.findings.length === 0) return [label("analysis_none", {}, "p"), ...notes];
    return [element("ul", {}, ...data.findings.map(finding)), ...notes];
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    return [failureBox(refusal.envelope, again)];
  }
}

function finding({ text, method }) {
  const how = method ? element("span", { class: "method", dir: "auto" }, method) : null;
  return element("li", { dir: "auto" }, element("span", {}, text), how);
}
