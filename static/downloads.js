/** Downloads of all rows of an answer. */

import { send } from "./api.js";
import { element } from "./dom.js";

/** Downloads the rows of that run's answer; resolves to whether it was possible. */
export async function download(format, runId, conversationId) {
  const query = new URLSearchParams({ format, ...(conversationId ? { conversation_id: conversationId } : {}) });
  try {
    const response = await send(`runs/${encodeURIComponent(runId)}/export?${query}`);
    if (!response.ok) return false;
    offer(await response.blob(), `${runId}.${format}`);
    return true;
  } catch {
    return false;
  }
}

function offer(blob, name) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
