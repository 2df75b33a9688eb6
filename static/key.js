/**
 * The reader's API key: asks for it when the server wants one, keeps it where the reader chooses. Where people can sign
 * in, that is offered first.
 */

import { inThisTab, onThisDevice } from "./memory.js";
import { failedLogin, signIn } from "./sign_in.js";
import { setLabel } from "./texts.js";

const NAME = "api_key";
const SENDABLE = /^[\x21-\x7e]+$/; // characters that a header can hold

const dialog = document.getElementById("key-dialog");
const form = document.getElementById("key-form");
const field = document.getElementById("key");
const remembers = document.getElementById("key-remembered");
const title = document.getElementById("key-title");
const text = document.getElementById("key-text");
const signInButton = document.getElementById("sign-in");
const useButton = document.getElementById("key-use");
const complaint = document.getElementById("key-complaint");

let current = inThisTab.recall(NAME) ?? onThisDevice.recall(NAME);
let asking = null;
let signInPath = null;
let unsaidFailure = failedLogin;
let tell = () => {};

/** The key to send, or null. */
export function keyInUse() {
  return current;
}

/** Calls `listener` whenever a key is set or removed. */
export function onKeyChange(listener) {
  tell = listener;
}

/** Forgets the key everywhere. */
export function signOut() {
  use(null);
}

/** Whether the dialog for the key is open. */
export function isAskingForKey() {
  return asking !== null;
}

/**
 * Opens the dialog, or joins the open one; resolves to whether a key was given. `wasRefused`: a key was refused.
 * `path`: where people sign in; null: they can't.
 */
export function askForKey(wasRefused, path = null) {
  asking ??= opened(wasRefused, path).finally(() => (asking = null));
  return asking;
}

function opened(wasRefused, path) {
  signInPath = path;
  signInButton.hidden = path === null;
  useButton.className = path === null ? "primary" : "secondary"; // one thing to do stands out
  setLabel(title, path === null ? "key_title" : "sign_in_title");
  setLabel(text, path === null ? "key_text" : "key_instead");
  field.value = "";
  remembers.checked = onThisDevice.recall(NAME) !== null;
  complaint.hidden = true;
  if (unsaidFailure !== null) {
    complain(`login_${unsaidFailure}`);
    unsaidFailure = null;
  }
  if (wasRefused) {
    complain("key_refused");
    use(null);
  }
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "given"), { once: true });
  });
}

function complain(key) {
  setLabel(complaint, key);
  complaint.hidden = false;
}

function take(event) {
  event.preventDefault();
  const key = field.value.trim();
  if (!SENDABLE.test(key)) {
    complain("key_impossible");
    return;
  }
  use(key, remembers.checked ? onThisDevice : inThisTab);
  dialog.close("given");
}

function use(key, memory) {
  inThisTab.forget(NAME);
  onThisDevice.forget(NAME);
  memory?.remember(NAME, key);
  current = key;
  tell();
}

form.addEventListener("submit", take);
signInButton.addEventListener("click", () => signIn(signInPath));
document.getElementById("key-cancel").addEventListener("click", () => dialog.close());
