/** Shows a failure in place of an answer. */

import { element, glyph } from "./dom.js";
import { label } from "./texts.js";

/** A box for an `error` envelope; `onRetry` is called when the reader wants to try again. */
export function failureBox({ code, message, data }, onRetry) {
  const said = data.is_local ? ownWords(data.error_type, code) : serversWords(message, data);
  return element("div", { class: "failure", role: "alert" }, glyph("warning"), element(
    "div",
    { class: "failure-body" },
    ...said,
    data.retry_after_s ? label("retry_after", { seconds: String(data.retry_after_s) }, "p") : null,
    tail(data),
    data.retryable || data.error_type === "unauthorized" ? retryButton(onRetry) : null,
  ));
}

function ownWords(errorType, code) {
  return [label(`${errorType}_title`, {}, "h3"), label(`${errorType}_text`, { code }, "p")];
}

function serversWords(message, data) {
  const hint = data.hint ? [element("p", { class: "hint" }, data.hint)] : [];
  return [element("h3", {}, message), element("p", {}, data.error ?? ""), ...hint];
}

/** The ids to quote when asking for help. */
function tail(data) {
  const parts = [element("code", {}, data.error_type ?? "")];
  if (data.request_id) parts.push(label("request_id"), element("code", {}, data.request_id));
  return element("p", { class: "failure-tail" }, ...parts);
}

function retryButton(onRetry) {
  const button = element("button", { type: "button", class: "secondary retry" }, glyph("retry"), label("try_again"));
  button.addEventListener("click", onRetry, { once: true });
  return button;
}
