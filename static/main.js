/** The page: the question box, the settings, and one turn per question. */

import { ask } from "./ask.js";
import { element } from "./dom.js";
import { recall, remember } from "./preferences.js";
import { EXAMPLES, choose, language, preferredLanguage, setLabel, speak } from "./texts.js";
import { Turn } from "./turn.js";

const byId = (id) => document.getElementById(id);
const page = {
  composer: byId("composer"),
  question: byId("question"),
  askButton: byId("ask"),
  stopButton: byId("stop"),
  turns: byId("turns"),
  welcome: byId("welcome"),
  examples: byId("examples"),
  newConversation: byId("new-conversation"),
  settings: byId("settings"),
  routingMode: byId("routing-mode"),
  routingModeHelp: byId("routing-mode-help"),
};

// What the server needs to continue the conversation, and the question being answered (an AbortController), if any.
const NOTHING_SAID = { conversation_id: undefined, context_type: undefined };
let conversation = { ...NOTHING_SAID };
let running = null;
let lastTurn = null;

async function askQuestion(question) {
  const controller = new AbortController();
  setRunning(controller);
  const turn = startTurn(question);
  for await (const envelope of ask(requestBody(question), controller.signal)) {
    turn.show(envelope);
    if (running === controller) continueWith(envelope.data);
  }
  if (running === controller) setRunning(null);
}

function requestBody(question) {
  return { question, lang: language(), routing_mode: page.routingMode.value || undefined, ...conversation };
}

function continueWith(data) {
  if (data.conversation_id) conversation.conversation_id = data.conversation_id;
  if (data.response_type) conversation.context_type = data.response_type;
}

function startTurn(question) {
  lastTurn?.collapse();
  const turn = new Turn(question, { onRetry: () => retry(turn, question) });
  lastTurn = turn;
  page.turns.append(turn.element);
  showWelcome(false);
  turn.element.scrollIntoView({ block: "start" });
  return turn;
}

function retry(turn, question) {
  if (running) return;
  turn.element.remove();
  askQuestion(question);
  page.question.focus();
}

function setRunning(controller) {
  running = controller;
  page.askButton.hidden = controller !== null;
  page.stopButton.hidden = controller === null;
}

function stop() {
  running?.abort();
}

function startOver() {
  stop();
  setRunning(null);
  conversation = { ...NOTHING_SAID };
  lastTurn = null;
  page.turns.replaceChildren();
  showWelcome(true);
  page.question.focus();
}

function showWelcome(isShown) {
  page.welcome.hidden = !isShown;
  page.newConversation.hidden = isShown;
}

// ---------------------------------------------------------------------------------------------------- question box

function submit(event) {
  event?.preventDefault();
  const question = page.question.value.trim();
  page.question.focus();
  if (!question || running) return;
  page.question.value = "";
  fitQuestionBox();
  askQuestion(question);
}

function onQuestionKey(event) {
  // Enter also ends the choice of a Chinese word in an input method; that Enter is not a question. Safari reports it
  // after the composition, with the key code of one that is still going on.
  const isComposing = event.isComposing || event.keyCode === 229;
  if (event.key === "Enter" && !event.shiftKey && !isComposing) submit(event);
}

function fitQuestionBox() {
  page.question.style.height = "auto";
  page.question.style.height = `${page.question.scrollHeight}px`;
}

function onEscape(event) {
  if (event.key !== "Escape" || event.isComposing) return;
  if (page.settings.open) page.settings.open = false;
  else stop();
}

// -------------------------------------------------------------------------------------------------------- settings

function setLanguage(chosen) {
  speak(chosen);
  for (const button of document.querySelectorAll("[data-language]")) {
    button.setAttribute("aria-pressed", String(button.dataset.language === chosen));
  }
  page.examples.replaceChildren(...EXAMPLES.map((pair) => exampleItem(choose(pair))));
}

function exampleItem(question) {
  const button = element("button", { type: "button", class: "example" }, question);
  button.addEventListener("click", () => {
    if (running) return;
    page.question.focus();
    askQuestion(question);
  });
  return element("li", {}, button);
}

function setRoutingMode(mode) {
  const isKnown = [...page.routingMode.options].some((option) => option.value === mode);
  page.routingMode.value = isKnown ? mode : "";
  setLabel(page.routingModeHelp, `help_${page.routingMode.value || "default"}`);
  page.settings.classList.toggle("is-changed", page.routingMode.value !== "");
}

function closeSettingsOutside(event) {
  if (page.settings.open && !page.settings.contains(event.target)) page.settings.open = false;
}

function listen() {
  page.composer.addEventListener("submit", submit);
  page.question.addEventListener("keydown", onQuestionKey);
  page.question.addEventListener("input", fitQuestionBox);
  page.stopButton.addEventListener("click", () => {
    stop();
    page.question.focus();
  });
  page.newConversation.addEventListener("click", startOver);
  page.routingMode.addEventListener("change", () => {
    setRoutingMode(page.routingMode.value);
    remember("routing_mode", page.routingMode.value);
  });
  for (const button of document.querySelectorAll("[data-language]")) {
    button.addEventListener("click", () => {
      setLanguage(button.dataset.language);
      remember("language", button.dataset.language);
    });
  }
  document.addEventListener("keydown", onEscape);
  document.addEventListener("pointerdown", closeSettingsOutside);
}

setRoutingMode(recall("routing_mode") ?? "");
setLanguage(["zh", "en"].find((known) => known === recall("language")) ?? preferredLanguage());
listen();
// On a touch screen the keyboard would cover the examples.
if (matchMedia("(pointer: fine)").matches) page.question.focus();
