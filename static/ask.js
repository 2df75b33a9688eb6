/** The conversation with the server: one question in, envelopes out, whatever happens on the way. */

import { parseExact } from "./exact_json.js";
import { readEvents } from "./sse.js";

const ASK_URL = "api/v0/ask_agent_stream"; // relative, so that the page also works behind a path prefix
const TERMINAL = new Set(["completed", "error"]);

// The server sends at least a comment every 15 s. Longer silence means the connection is dead, even if nobody said so.
const SILENCE_LIMIT_MS = 45_000;

/**
 * Asks, and yields `{code, success, message, data}` as they arrive. Never throws. The last envelope always has
 * `data.type` `completed` or `error`; failures that only the browser can see come as `error` with `data.is_local` and
 * an `error_type` of `unreachable`, `connection_lost`, `stream_ended`, `bad_answer` or `stopped`.
 */
export async function* ask(body, signal) {
  const transfer = new AbortController();
  signal.addEventListener("abort", () => transfer.abort());
  const silence = new SilenceAlarm(transfer);
  const connection = { isOpen: false };
  try {
    const response = await post(body, transfer.signal);
    connection.isOpen = true;
    yield* isEventStream(response) ? envelopes(response, silence, signal) : plainAnswer(response);
  } catch (error) {
    yield localError(signal.aborted ? "stopped" : failureKind(error, connection));
  } finally {
    silence.end();
  }
}

function post(body, signal) {
  return fetch(ASK_URL, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "text/event-stream, application/json" },
    body: JSON.stringify(body),
    cache: "no-store",
    signal,
  });
}

function isEventStream(response) {
  return response.ok && (response.headers.get("Content-Type") ?? "").startsWith("text/event-stream");
}

async function* envelopes(response, silence, signal) {
  for await (const event of readEvents(response.body, () => silence.restart())) {
    signal.throwIfAborted(); // events that were read together with the one being shown when the reader said stop
    const envelope = parseEnvelope(event.data);
    yield envelope;
    if (TERMINAL.has(envelope.data.type)) return;
  }
  yield localError("stream_ended");
}

/** Requests that are refused before a stream starts get one JSON envelope; proxies answer with anything at all. */
async function* plainAnswer(response) {
  const text = await response.text();
  try {
    const envelope = parseEnvelope(text);
    envelope.data.type = envelope.success ? "completed" : "error";
    yield envelope;
  } catch {
    yield localError("bad_answer", { code: response.status });
  }
}

function parseEnvelope(text) {
  const envelope = parseExact(text);
  if (typeof envelope?.data !== "object" || envelope.data === null) throw new SyntaxError("not an envelope");
  return envelope;
}

function failureKind(error, connection) {
  if (error instanceof SyntaxError) return "bad_answer";
  return connection.isOpen ? "connection_lost" : "unreachable";
}

function localError(errorType, { code = 0 } = {}) {
  const data = { type: "error", error_type: errorType, is_local: true, retryable: true };
  return { code, success: false, message: "", data };
}

/** Aborts `transfer` when nothing has been heard for a while. */
class SilenceAlarm {
  #transfer;
  #timer;

  constructor(transfer) {
    this.#transfer = transfer;
    this.restart();
  }

  restart() {
    this.end();
    this.#timer = setTimeout(() => this.#transfer.abort(), SILENCE_LIMIT_MS);
  }

  end() {
    clearTimeout(this.#timer);
  }
}
