/** Answers as the page handles them: the server's envelopes, and failures only the browser can see in the same shape. */

import { parseExact } from "./exact_json.js";

/** `text` as an envelope `{code, success, message, data}`. Throws SyntaxError when it is none. */
export function parseEnvelope(text) {
  const envelope = parseExact(text);
  if (typeof envelope?.data !== "object" || envelope.data === null) throw new SyntaxError("not an envelope");
  return envelope;
}

/** The envelope of a whole response; any other answer, such as a proxy's, becomes a `bad_answer`. */
export async function readEnvelope(response) {
  try {
    return withRetryAfter(parseEnvelope(await response.text()), response);
  } catch {
    return localFailure("bad_answer", { code: response.status });
  }
}

function withRetryAfter(envelope, response) {
  const seconds = Number(response.headers.get("Retry-After"));
  if (!envelope.success && seconds > 0) envelope.data.retry_after_s ??= seconds;
  return envelope;
}

/** An `error` envelope with the page's own words for `errorType` (texts.js has them). */
export function localFailure(errorType, { code = 0 } = {}) {
  const data = { type: "error", error_type: errorType, is_local: true, retryable: true };
  return { code, success: false, message: "", data };
}
