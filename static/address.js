/** Where things are. The page may be served below a path, so every address is found from this module's own. */

const ROOT = new URL("../", import.meta.url);
const CONVERSATION = /\/c\/([^/]+)$/;

/** The address of `path` at this server, such as `api/v0/me`. */
export function at(path) {
  return new URL(path, ROOT).href;
}

/** The id of the conversation that the address bar names, or null. */
export function addressedConversation() {
  const [, id] = CONVERSATION.exec(location.pathname) ?? [];
  try {
    return id ? decodeURIComponent(id) : null;
  } catch {
    return null; // not an id: somebody's mistyped address
  }
}

/** Puts a conversation, or none, into the address bar. With `isStep` the browser's back button returns to the one before. */
export function showAddress(id, { isStep = false } = {}) {
  if (id === addressedConversation()) return;
  const address = at(id === null ? "." : `c/${encodeURIComponent(id)}`);
  if (isStep) window.history.pushState(null, "", address);
  else window.history.replaceState(null, "", address);
}
