/** What the reader thinks of an answer: right, wrong, or right with another query. */

import { request, Refusal } from "./api.js";
import { element, glyph, setTranslatedAttribute, whileDisabled } from "./dom.js";
import { resultView } from "./result_view.js";
import { label, setLabel } from "./texts.js";

/** A `<div>` that asks whether the answer of that run is right. */
export function feedback({ run_id: runId, conversation_id: conversationId, sql }) {
  const said = label("feedback_question");
  const status = element("span", { class: "feedback-status", role: "status" }, said);
  const place = element("div", { class: "feedback" }, status);
  const corrected = element("div", { class: "corrected" });
  const give = async (rating, more = {}) => {
    const data = await send(status, { run_id: runId, conversation_id: conversationId, rating, ...more });
    if (data?.query_result) {
      corrected.replaceChildren(resultView(data.query_result, {}));
      place.after(corrected);
    }
    return data !== null;
  };
  const right = rateButton("up", "feedback_right", () => give("satisfied"));
  const wrong = rateButton("down", "feedback_wrong", () => {
    if (!place.querySelector("form")) place.append(correction(sql, give));
    place.querySelector("textarea").focus({ preventScroll: true });
    place.scrollIntoView({ block: "nearest" });
  });
  place.append(right, wrong);
  return place;
}

function rateButton(drawing, key, onClick) {
  const button = element("button", { type: "button", class: "quiet rate" }, glyph(drawing));
  setTranslatedAttribute(button, "aria-label", key);
  setTranslatedAttribute(button, "title", key);
  button.addEventListener("click", () => {
    for (const other of button.parentElement.querySelectorAll(".rate")) other.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-pressed", "true");
    onClick();
  });
  return button;
}

/** What was wrong, and the query that would have been right; one of both is enough. */
function correction(sql, give) {
  const comment = field("feedback_comment", "");
  const corrected = sql ? field("feedback_sql", sql) : null;
  if (corrected) corrected.querySelector("textarea").className = "code";
  const button = element("button", { type: "submit", class: "secondary" }, label("feedback_send"));
  const form = element("form", { class: "correction" }, comment, corrected, button);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = comment.querySelector("textarea").value.trim();
    const query = corrected?.querySelector("textarea").value.trim() ?? "";
    const isCorrected = query !== "" && query !== sql?.trim();
    const more = { ...(text ? { comment: text } : {}), ...(isCorrected ? { modified_sql: query } : {}) };
    const isTaken = await whileDisabled(button, () => give(isCorrected ? "need_modification" : "unsatisfied", more));
    if (!isTaken) return;
    form.parentElement.querySelector(".rate[aria-pressed=true]")?.focus();
    form.remove();
  });
  return form;
}

function field(key, text) {
  const area = element("textarea", { rows: text ? Math.min(12, text.split("\n").length + 1) : 2 });
  area.value = text;
  return element("label", {}, label(key), area);
}

/** Resolves to the reply, null where it was not taken; says what was learnt, or why it was not taken. */
async function send(status, body) {
  try {
    const data = await request("feedback", { method: "POST", body });
    const learnt = data.example ? label("feedback_learnt", { question: data.example.question }) : null;
    const lines = [label("feedback_thanks"), learnt, ...(data.warnings ?? []).map((text) => element("span", {}, ` ${text}`))];
    status.replaceChildren(...lines.filter((line) => line !== null));
    return data;
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    const reason = refusal.envelope.data.error ?? refusal.envelope.message;
    if (reason) status.replaceChildren(element("span", { class: "refused" }, reason));
    else setLabel(status.firstElementChild, "feedback_failed");
    return null;
  }
}
