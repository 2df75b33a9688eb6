/** Signing in at the service's issuer: the browser leaves the page, and comes back with a session. */

import { addressedConversation, at } from "./address.js";

const REASONS = new Set(["refused", "expired", "unavailable", "invalid", "too_large", "too_often"]);

/** Leaves the page for `path`, where people sign in. A question that waits for it is asked afterwards. */
export function signIn(path) {
  const id = addressedConversation();
  const query = id === null ? "" : `?${new URLSearchParams({ to: `c/${id}` })}`;
  location.assign(at(path) + query);
}

/** Why the reader, who comes back from there, could not be signed in; null: the reader doesn't, or is signed in. */
export const failedLogin = readFailure();

function readFailure() {
  const reason = new URLSearchParams(location.search).get("login");
  if (reason === null) return null;
  history.replaceState(null, "", location.pathname);
  return REASONS.has(reason) ? reason : "invalid";
}

/** Ends the session, here and at the issuer if it has a place for that. Resolves to whether it has ended. */
export async function endSession() {
  const response = await fetch(at("logout"), { method: "POST", cache: "no-store" }).catch(() => null);
  if (!response?.ok) return false;
  const { data } = await response.json();
  if (data.issuer_logout_url) location.assign(data.issuer_logout_url);
  return true;
}
