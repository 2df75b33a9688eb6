/** Figures about the rows of an answer, in sentences; how each was computed is folded away below them. */

import { Refusal, request } from "./api.js";
import { element, glyph, whileDisabled } from "./dom.js";
import { failureBox } from "./failure.js";
import { label, language } from "./texts.js";

/** A button, and the place where its sentences are shown. */
export function analysis(runId, conversationId) {
  const button = element("button", { type: "button", class: "quiet" }, glyph("bar"), label("analyze"));
  const place = element("div", { class: "analysis", role: "status" });
  const show = () =>
    whileDisabled(button, async () => {
      place.replaceChildren(label("analyzing", {}, "p"));
      place.replaceChildren(...(await found(runId, conversationId, show)));
      place.scrollIntoView({ block: "nearest" });
    });
  button.addEventListener("click", show);
  return { button, place };
}

async function found(runId, conversationId, again) {
  const body = { lang: language(), ...(conversationId ? { conversation_id: conversationId } : {}) };
  try {
    const data = await request(`runs/${encodeURIComponent(runId)}/analyze`, { method: "POST", body });
    const notes = (data.warnings ?? []).map((text) => element("p", { class: "method" }, text));
    if (data.findings.length === 0) return [label("analysis_none", {}, "p"), ...notes];
    const sentences = data.findings.map(({ text }) => element("li", { dir: "auto" }, text));
    return [element("ul", {}, ...sentences), ...notes, ...methods(data.findings)];
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    return [failureBox(refusal.envelope, again)];
  }
}

/** Statisticians read it, managers hardly: the sentences stand without it. */
function methods(findings) {
  const told = [...new Set(findings.map(({ method }) => method).filter(Boolean))];
  if (told.length === 0) return [];
  const items = told.map((method) => element("li", { dir: "auto" }, method));
  return [element("details", { class: "methods" }, label("analysis_methods", {}, "summary"), element("ul", { class: "method" }, ...items))];
}
