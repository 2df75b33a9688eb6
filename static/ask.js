/** A question being answered: gives its envelopes as they arrive, and connects again when a connection breaks. */

import { Refusal, request, send } from "./api.js";
import { localFailure, parseEnvelope, readEnvelope } from "./envelopes.js";
import { isAskingForKey } from "./key.js";
import { readEvents } from "./sse.js";

const TERMINAL = new Set(["completed", "error"]);
const GONE = new Set([204, 404, 410]); // 204: no event follows those the page has
const REFUSED = new Set([401, 403]);

// The server sends at least a comment every 15 s, so after a longer silence the connection counts as dead.
const SILENCE_LIMIT_MS = 45_000;
// How long the page tries to reconnect without hearing from the run. Comments count only on a connection that has
// lasted a while, so that a connection that always breaks at the same place is not tried for ever.
const PATIENCE_MS = 120_000;
const STEADY_MS = 5000;
const PAUSES_MS = [200, 1000, 2000, 4000, 8000];
// How long a stopped question waits for its run id, with which it can be cancelled.
const NAMING_MS = 5000;

/** A key for one question, the same each time it is sent. */
export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * One question. Its run goes on at the server until `stop()`, even if the connection breaks.
 *
 * `body` is that of the request, `key` its Idempotency-Key. With the `runId` of a run that exists, the question is not
 * asked again; the run is followed from its first event. `onRun(runId)` is called when the run id is known.
 */
export class Asking {
  #body;
  #key;
  #runId;
  #onRun;
  #lastSeq = 0;
  #hasBegun = false; // the server has accepted the question, even if no event of its run has come
  #heardAt = Date.now();
  #isOver = false; // stopped or left: no more events are wanted
  #isStopped = false;
  #openQuestion = null; // the id of what the run asks its user, while nothing has come after it
  #transfer = new AbortController();
  #wake = () => {};

  constructor(body, { key = newKey(), runId = null, onRun = () => {} } = {}) {
    this.#body = { ...body, on_disconnect: "continue" };
    this.#key = key;
    this.#runId = runId;
    this.#onRun = onRun;
  }

  /**
   * Yields `{code, success, message, data}`. Never throws. The last one always has `data.type` `completed` or `error`;
   * after a `question`, more come when it has been answered, by `answer` or by somebody else.
   * failures that only the browser can see come as `error` with `data.is_local` and an `error_type` of `unreachable`,
   * `connection_lost`, `stream_ended`, `bad_answer` or `run_gone`. `{data: {type: "reconnecting"}}` says that the
   * page is reconnecting. After `stop()` or `leave()` nothing comes.
   */
  async *envelopes() {
    let firstFailure = null;
    let attempt = 0;
    while (!this.#isOver) {
      let failure = "stream_ended";
      try {
        for await (const envelope of this.#connection()) {
          if (this.#isOver) return;
          [firstFailure, attempt, this.#heardAt] = [null, 0, Date.now()];
          this.#openQuestion = envelope.data.type === "question" ? envelope.data.interrupt_id : null;
          yield envelope;
          if (TERMINAL.has(envelope.data.type)) return;
        }
      } catch (error) {
        failure = error.kind ?? (error instanceof SyntaxError ? "bad_answer" : "connection_lost");
      }
      if (this.#isOver) return;
      if (this.#openQuestion !== null) {
        await this.#isAnswered();
        continue;
      }
      firstFailure ??= failure;
      if (!this.#canGoOn(failure) || Date.now() - this.#heardAt > PATIENCE_MS) {
        yield localFailure(firstFailure);
        return;
      }
      yield { data: { type: "reconnecting" } };
      await this.#pause(PAUSES_MS[Math.min(attempt++, PAUSES_MS.length - 1)]);
    }
  }

  /** Answers what the run asks. Resolves to null when there is an answer now, else to the envelope that refuses it. */
  async answer(answer) {
    const body = { interrupt_id: this.#openQuestion, answer };
    try {
      await request(`runs/${encodeURIComponent(this.#runId)}/resume`, { method: "POST", body });
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      if (refusal.envelope.code !== 409) return refusal.envelope; // 409: it was answered, or cancelled, elsewhere
    }
    this.#openQuestion = null;
    this.#heardAt = Date.now();
    this.#wake();
    return null;
  }

  /** Returns when the open question has its answer, or nobody listens any more. */
  async #isAnswered() {
    while (this.#openQuestion !== null && !this.#isOver) {
      await new Promise((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Ends the run. */
  stop() {
    this.#isOver = this.#isStopped = true;
    if (this.#runId) this.#cancel();
    else setTimeout(() => this.leave(), NAMING_MS);
  }

  /** Stops listening; the run goes on. */
  leave() {
    this.#isOver = true;
    this.#transfer.abort();
    this.#wake();
  }

  #cancel() {
    this.leave();
    const ended = send(`runs/${encodeURIComponent(this.#runId)}/cancel`, { method: "POST", keepalive: true });
    ended.catch(() => {}); // the page shows it as stopped; the server ends it by its own limits
  }

  /** Sends the question again if its run id is unknown; by its key the server knows that it is the same question. */
  #canGoOn(failure) {
    return (this.#hasBegun || this.#runId !== null) && failure !== "bad_answer" && failure !== "run_gone";
  }

  async *#connection() {
    const transfer = (this.#transfer = new AbortController());
    const silence = new SilenceAlarm(transfer);
    const isAsked = this.#runId === null;
    try {
      const response = await this.#request(transfer.signal);
      if (isEventStream(response)) yield* this.#events(response.body, silence);
      else if (isAsked || REFUSED.has(response.status)) yield await wholeAnswer(response);
      else throw new Interruption(GONE.has(response.status) ? "run_gone" : "unreachable");
    } finally {
      silence.end();
    }
  }

  async #request(signal) {
    try {
      return await (this.#runId === null ? this.#ask(signal) : this.#follow(signal));
    } catch {
      throw new Interruption("unreachable");
    }
  }

  #ask(signal) {
    const headers = { Accept: "text/event-stream, application/json", "Idempotency-Key": this.#key };
    return send("ask_agent_stream", { method: "POST", body: this.#body, headers, signal });
  }

  #follow(signal) {
    const path = `runs/${encodeURIComponent(this.#runId)}/events?after=${this.#lastSeq}`;
    return send(path, { headers: { Accept: "text/event-stream" }, signal });
  }

  async *#events(body, silence) {
    this.#hasBegun = true;
    const openedAt = Date.now();
    const onBytes = () => {
      silence.restart();
      if (Date.now() - openedAt > STEADY_MS) this.#heardAt = Date.now();
    };
    for await (const event of readEvents(body, onBytes)) {
      if (!this.#isNew(event.id)) continue;
      yield parseEnvelope(event.data);
    }
  }

  /** Remembers an event's id `<run_id>:<seq>`; false when the event came before. */
  #isNew(id) {
    const colon = id.lastIndexOf(":");
    const seq = Number(id.slice(colon + 1));
    if (colon < 0 || !Number.isInteger(seq)) return true;
    if (this.#runId === null) this.#name(id.slice(0, colon));
    if (seq <= this.#lastSeq) return false;
    this.#lastSeq = seq;
    return true;
  }

  #name(runId) {
    this.#runId = runId;
    if (this.#isStopped) this.#cancel();
    else this.#onRun(runId);
  }

  /** Waits; returns early when the network is back. */
  #pause(milliseconds) {
    return new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, milliseconds);
      addEventListener("online", resolve, { once: true });
    });
  }
}

/** Why a connection ended before the last event. */
class Interruption extends Error {
  constructor(kind) {
    super(kind);
    this.kind = kind;
  }
}

function isEventStream(response) {
  return response.ok && (response.headers.get("Content-Type") ?? "").startsWith("text/event-stream");
}

/** Requests that are refused before a stream starts get one JSON envelope. */
async function wholeAnswer(response) {
  const envelope = await readEnvelope(response);
  envelope.data.type = envelope.success ? "completed" : "error";
  return envelope;
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
    this.#timer = setTimeout(() => (isAskingForKey() ? this.restart() : this.#transfer.abort()), SILENCE_LIMIT_MS);
  }

  end() {
    clearTimeout(this.#timer);
  }
}
