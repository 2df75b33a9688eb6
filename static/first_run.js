/** A hint for those who have just started Citu: what it answers without a model, and how one is connected. */

import { at } from "./address.js";
import { element } from "./dom.js";
import { onThisDevice } from "./memory.js";
import { label } from "./texts.js";

const DISMISSED = "no_model_dismissed";

/**
 * Shows the hint in `place` while no model is connected, until a reader has dismissed it on this device; `onDismissed()` is
 * called then.
 */
export async function hintAtModels(place, onDismissed) {
  if (onThisDevice.recall(DISMISSED) || !(await isWithoutModel())) return;
  const button = element("button", { type: "button", class: "quiet" }, label("no_model_dismiss"));
  button.addEventListener("click", () => {
    onThisDevice.remember(DISMISSED, "1");
    place.hidden = true;
    onDismissed();
  });
  const how = element("details", {}, element("summary", {}, label("no_model_how")), label("no_model_settings", {}, "p"));
  place.replaceChildren(element("div", {}, label("no_model", {}, "p"), how), button);
  place.hidden = false;
}

async function isWithoutModel() {
  try {
    const envelope = await (await fetch(at("ready"))).json();
    return envelope.data.model?.status === "not_configured";
  } catch {
    return false; // nothing is known, so nothing is said
  }
}
