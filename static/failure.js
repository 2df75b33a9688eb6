/** Shows a failure in place of an answer. */

import { element, glyph } from "./dom.js";
import { label } from "./texts.js";

// Nothing is broken: the question or its SQL is not for Citu. Ids and types are of no use to the reader then.
const REFUSALS = new Set(["forbidden_keywords", "forbidden_object", "cost_exceeded", "syntax_error", "validation_exception"]);

/** Whether an `error` envelope is one of them. */
export function isRefusal({ data }) {
  return REFUSALS.has(data.error_type);
}

/** A box for an `error` envelope; `onRetry` is called when the reader wants to try again. `isNews`: it is read out at once. */
export function failureBox(envelope, onRetry, { isNews = true } = {}) {
  const { code, message, data } = envelope;
  const isRefused = isRefusal(envelope);
  const said = isRefused ? refusal(data) : data.is_local ? ownWords(data.error_type, code) : serversWords(message, data);
  return element("div", { class: isRefused ? "failure refusal" : "failure", role: isNews ? "alert" : null }, glyph("warning"), element(
    "div",
    { class: "failure-body" },
    ...said,
    data.retry_after_s ? label("retry_after", { seconds: String(data.retry_after_s) }, "p") : null,
    isRefused ? folded(data) : tail(data),
    canBeAskedAgain(data, isRefused) ? retryButton(onRetry, data.retryable ? "try_again" : "ask_again") : null,
  ));
}

function ownWords(errorType, code) {
  return [label(`${errorType}_title`, {}, "h3"), label(`${errorType}_text`, { code }, "p")];
}

function serversWords(message, data) {
  return [element("h3", {}, message), ...sentences(data)];
}

function sentences(data) {
  const hint = data.hint ? [element("p", { class: "hint" }, data.hint)] : [];
  return [element("p", {}, data.error ?? ""), ...hint];
}

/** Said once: what was refused for changing data needs no reason but that one; of any other the server's sentence is it. */
function refusal(data) {
  if (data.error_type === "forbidden_keywords") {
    return [label("reads_only_title", {}, "h3"), label("reads_only_text", {}, "p")];
  }
  return [label("refused_title", {}, "h3"), ...sentences(data)];
}

function folded(data) {
  const isSaid = data.error_type !== "forbidden_keywords";
  const sentence = isSaid ? [] : sentences(data);
  return element("details", { class: "failure-more" }, label("about", {}, "summary"), ...sentence, tail(data));
}

/** The ids to quote when asking for help. */
function tail(data) {
  const parts = [element("code", {}, data.error_type ?? "")];
  if (data.request_id) parts.push(label("request_id"), element("code", {}, data.request_id));
  return element("p", { class: "failure-tail" }, ...parts);
}

/** Not what would be refused again. */
function canBeAskedAgain({ error_type: errorType }, isRefused) {
  return !isRefused && errorType !== "invalid_request";
}

/** Who ended a question that was stopped, and a button that asks it again. */
export function stoppedBox(data, onRetry) {
  return element("div", { class: "stopped" }, label(endedBy(data), {}, "p"), retryButton(onRetry, "ask_again"));
}

function endedBy({ error_type: errorType, retryable: isOfService }) {
  if (errorType === "stopped") return "stopped_by_you";
  return isOfService ? "stopped_by_service" : "stopped_text";
}

function retryButton(onRetry, key) {
  const button = element("button", { type: "button", class: "secondary retry" }, glyph("retry"), label(key));
  button.addEventListener("click", onRetry, { once: true });
  return button;
}
