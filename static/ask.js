/** A question being answered: envelopes as they arrive, over as many connections as that takes. */

import { Refusal, request, send } from "./api.js";
import { localFailure, parseEnvelope, readEnvelope } from "./envelopes.js";
import { isAskingForKey } from "./key.js";
import { readEvents } from "./sse.js";

const TERMINAL = new Set(["completed", "error"]);
const GONE = new Set([204, 404, 410]); // 204: nothing comes after what the page has heard
const REFUSED = new Set([401, 403]);

// The server sends at least a comment every 15 s. Longer silence means the connection is dead, even if nobody said so.
const SILENCE_LIMIT_MS = 45_000;
// How long the page tries to get back to a run of which it hears nothing. A comment counts only from a connection that
// has been steady for a while: one that breaks at the same place every time must not be tried for ever.
const PATIENCE_MS = 120_000;
const STEADY_MS = 5000;
const PAUSES_MS = [200, 1000, 2000, 4000, 8000];
// A question that is stopped before its run has a name can be cancelled as soon as it has one.
const NAMING_MS = 5000;

/** A name for one question, the same however often it has to be sent. */
export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * One question. Its run goes on at the server whatever happens to the connection, until `stop()`.
 *
 * `body` is that of the request, `key` its Idempotency-Key. With the `runId` of a run that has begun already it is not
 * asked again but followed from its first event. `onRun(runId)` is called when the run's name is known.
 */
export class Asking {
  #body;
  #key;
  #runId;
  #onRun;
  #lastSeq = 0;
  #hasBegun = false; // the server has taken the question, whether or not anything was heard of its run
  #heardAt = Date.now();
  #isOver = false; // stopped or left: nobody listens any more
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
   * connection is being made anew. After `stop()` or `leave()` nothing comes.
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
    ended.catch(() => {}); // the reader has seen that it stopped; the server will end it by its own limits
  }

  /** A run without a name is asked for once more: by its key the server knows that it is the same question. */
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

  /** Takes note of an event's id `<run_id>:<seq>`; false when the event was there before. */
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

  /** Waits, but not longer than until the network is back. */
  #pause(milliseconds) {
    return new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, milliseconds);
      addEventListener("online", resolve, { once: true });
    });
  }
}

/** Why a connection did not lead to an end. */
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
