/** The page: connects the question box and the settings with the conversation. */

import { request } from "./api.js";
import { Conversation } from "./conversation.js";
import { Examples } from "./examples.js";
import { History } from "./history.js";
import { keyInUse, onKeyChange, signOut } from "./key.js";
import { onThisDevice } from "./memory.js";
import { language, preferredLanguage, setLabel, speak } from "./texts.js";

const byId = (id) => document.getElementById(id);
const page = {
  composer: byId("composer"),
  question: byId("question"),
  askButton: byId("ask"),
  stopButton: byId("stop"),
  welcome: byId("welcome"),
  newConversation: byId("new-conversation"),
  history: byId("show-history"),
  settings: byId("settings"),
  routingMode: byId("routing-mode"),
  routingModeHelp: byId("routing-mode-help"),
  keyRow: byId("key-row"),
  keyUser: byId("key-user"),
  signOut: byId("sign-out"),
};

const conversation = new Conversation(byId("turns"), showState);
const history = new History(byId("history"), conversation);
const examples = new Examples(byId("examples-block"), byId("examples"), askExample);

function showState() {
  page.askButton.hidden = conversation.isRunning;
  page.stopButton.hidden = !conversation.isRunning;
  page.welcome.hidden = !conversation.isEmpty;
  page.newConversation.hidden = conversation.isEmpty;
}

function askQuestion(question) {
  conversation.ask(question, { lang: language(), routing_mode: page.routingMode.value || undefined });
}

function askExample(question) {
  if (conversation.isRunning) return;
  page.question.focus();
  askQuestion(question);
}

function startOver() {
  conversation.startOver();
  page.question.focus();
}

// ---------------------------------------------------------------------------------------------------- question box

function submit(event) {
  event?.preventDefault();
  const question = page.question.value.trim();
  page.question.focus();
  if (!question || conversation.isRunning) return;
  page.question.value = "";
  fitQuestionBox();
  askQuestion(question);
}

function onQuestionKey(event) {
  // Enter also ends the composition of a Chinese word in an input method, and must not send the question then. Safari
  // reports that Enter after the composition, with the key code of a composition in progress.
  const isComposing = event.isComposing || event.keyCode === 229;
  if (event.key === "Enter" && !event.shiftKey && !isComposing) submit(event);
}

function fitQuestionBox() {
  page.question.style.height = "auto";
  page.question.style.height = `${page.question.scrollHeight}px`;
}

function onEscape(event) {
  if (event.key !== "Escape" || event.isComposing || document.querySelector("dialog[open]")) return;
  if (page.settings.open) page.settings.open = false;
  else conversation.stop();
}

// -------------------------------------------------------------------------------------------------------- settings

function setLanguage(chosen) {
  speak(chosen);
  for (const button of document.querySelectorAll("[data-language]")) {
    button.setAttribute("aria-pressed", String(button.dataset.language === chosen));
  }
  examples.show(chosen);
}

function setRoutingMode(mode) {
  const isKnown = [...page.routingMode.options].some((option) => option.value === mode);
  page.routingMode.value = isKnown ? mode : "";
  setLabel(page.routingModeHelp, `help_${page.routingMode.value || "default"}`);
  page.settings.classList.toggle("is-changed", page.routingMode.value !== "");
}

function showKey() {
  page.keyRow.hidden = keyInUse() === null;
  page.keyUser.textContent = "";
  if (keyInUse() !== null) void showUser(keyInUse());
}

async function showUser(key) {
  // Don't ask for a key to get the name: without it, the row stays empty.
  const me = await request("me", { asksForKey: false }).catch(() => null);
  if (me !== null && keyInUse() === key) page.keyUser.textContent = me.user_id ?? "";
}

function closeSettingsOutside(event) {
  if (page.settings.open && !page.settings.contains(event.target)) page.settings.open = false;
}

function listen() {
  page.composer.addEventListener("submit", submit);
  page.question.addEventListener("keydown", onQuestionKey);
  page.question.addEventListener("input", fitQuestionBox);
  page.stopButton.addEventListener("click", () => {
    conversation.stop();
    page.question.focus();
  });
  page.newConversation.addEventListener("click", startOver);
  page.history.addEventListener("click", () => history.open());
  page.signOut.addEventListener("click", () => {
    signOut();
    page.settings.open = false;
    startOver(); // the page still shows the former user's conversation
  });
  onKeyChange(() => {
    showKey();
    examples.show(language());
  });
  page.routingMode.addEventListener("change", () => {
    setRoutingMode(page.routingMode.value);
    onThisDevice.remember("routing_mode", page.routingMode.value);
  });
  for (const button of document.querySelectorAll("[data-language]")) {
    button.addEventListener("click", () => {
      setLanguage(button.dataset.language);
      onThisDevice.remember("language", button.dataset.language);
    });
  }
  document.addEventListener("keydown", onEscape);
  document.addEventListener("pointerdown", closeSettingsOutside);
}

setRoutingMode(onThisDevice.recall("routing_mode") ?? "");
setLanguage(["zh", "en"].find((known) => known === onThisDevice.recall("language")) ?? preferredLanguage());
listen();
showKey();
conversation.restore();
// Don't focus on a touch screen, where the keyboard would cover the examples.
if (matchMedia("(pointer: fine)").matches) page.question.focus();
