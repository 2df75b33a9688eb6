/** Sends a file with its progress, which `fetch` does not tell. */

import { at } from "./address.js";
import { localFailure } from "./envelopes.js";
import { askForKey, keyInUse } from "./key.js";
import { language } from "./texts.js";

/**
 * Resolves to the envelope of the server's answer.
 * `onProgress(part)` is told which part has been sent, from 0 to 1; `signal` ends the sending.
 */
export async function sendFile(path, file, { onProgress, signal }) {
  for (;;) {
    const key = keyInUse();
    const envelope = await sendOnce(path, file, key, onProgress, signal);
    if (envelope.code !== 401) return envelope;
    const isNewKeyThere = keyInUse() !== key || (await askForKey(key !== null));
    if (!isNewKeyThere) return envelope;
  }
}

function sendOnce(path, file, key, onProgress, signal) {
  return new Promise((resolve) => {
    const sending = new XMLHttpRequest();
    sending.open("POST", at(`api/v0/${path}`));
    sending.setRequestHeader("Accept-Language", language());
    if (key) sending.setRequestHeader("Authorization", `Bearer ${key}`);
    sending.upload.addEventListener("progress", ({ loaded, total }) => onProgress(total ? loaded / total : 0));
    sending.addEventListener("load", () => resolve(envelopeOf(sending.responseText)));
    for (const end of ["error", "abort", "timeout"]) {
      sending.addEventListener(end, () => resolve(localFailure("unreachable")));
    }
    signal.addEventListener("abort", () => sending.abort());
    const form = new FormData();
    form.append("lang", language());
    form.append("file", file);
    sending.send(form);
  });
}

function envelopeOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return localFailure("unreachable");
  }
}
