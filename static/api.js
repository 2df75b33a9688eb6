/** Requests to the server. Each carries the reader's key, or asks the reader for one if the server wants it. */

import { at } from "./address.js";
import { localFailure, readEnvelope } from "./envelopes.js";
import { askForKey, keyInUse } from "./key.js";
import { language } from "./texts.js";

const ROOT = at("api/v0/");

/** An answer other than success, with its envelope. */
export class Refusal extends Error {
  constructor(envelope) {
    super(envelope.data.error_type);
    this.envelope = envelope;
  }
}

/**
 * Sends a request and resolves to the Response. A 401 asks the reader for a key until one is accepted or none is given.
 * Requests that the reader did not start pass `asksForKey: false`.
 */
export async function send(path, { method = "GET", body, headers = {}, asksForKey = true, ...options } = {}) {
  for (;;) {
    const key = keyInUse();
    const response = await fetch(ROOT + path, {
      method,
      headers: {
        "Accept-Language": language(),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...(key ? { Authorization: `Bearer ${key}` } : {}),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      ...options,
    });
    if (response.status !== 401 || !asksForKey) return response;
    const isNewKeyThere = keyInUse() !== key || (await askForKey(key !== null, await signInPath(response)));
    if (!isNewKeyThere) return response;
  }
}

/** Where people sign in, as a refusal tells it; null: they can't. */
async function signInPath(refused) {
  const envelope = await refused.clone().json().catch(() => null);
  return envelope?.data?.sign_in ?? null;
}

/** The `data` of the server's answer. Throws `Refusal`. */
export async function request(path, options) {
  const envelope = await answer(path, options);
  if (!envelope.success) throw new Refusal(envelope);
  return envelope.data;
}

async function answer(path, options) {
  try {
    return await readEnvelope(await send(path, options));
  } catch {
    return localFailure("unreachable");
  }
}
