/** The page: connects the question box and the settings with the conversation. */

import { request } from "./api.js";
import { Completions } from "./completions.js";
import { Conversation } from "./conversation.js";
import { Databases } from "./databases.js";
import { Examples } from "./examples.js";
import { keyInUse, onKeyChange, signOut } from "./key.js";
import { onThisDevice } from "./memory.js";
import { endSession, failedLogin } from "./sign_in.js";
import { language, preferredLanguage, setLabel, speak, titlePage } from "./texts.js";
import { setTheme, theme } from "./theme.js";

const byId = (id) => document.getElementById(id);
const page = {
  composer: byId("composer"),
  question: byId("question"),
  askButton: byId("ask"),
  stopButton: byId("stop"),
  welcome: byId("welcome"),
  newConversation: byId("new-conversation"),
  history: byId("show-history"),
  schema: byId("show-schema"),
  reviews: byId("show-reviews"),
  files: byId("show-files"),
  notice: byId("notice"),
  theme: byId("theme"),
  settings: byId("settings"),
  agent: byId("agent"),
  agentHelp: byId("agent-help"),
  routingMode: byId("routing-mode"),
  routingModeHelp: byId("routing-mode-help"),
  keyRow: byId("key-row"),
  keyKind: byId("key-kind"),
  keyUser: byId("key-user"),
  signOut: byId("sign-out"),
};

const conversation = new Conversation(byId("turns"), { onChange: showState, onAsk: askOffered, onUnknown: sayUnknown, onUnsent: giveBack, onAgain: focusQuestion });
const databases = new Databases(byId("database-row"), byId("database"), () => examples.show(language()));
const inDatabase = (path) => databases.path(path);
const examples = new Examples(byId("examples-block"), byId("examples"), askOffered, inDatabase);
const completions = new Completions(page.question, {
  list: byId("completions"),
  status: byId("completions-status"),
  path: inDatabase,
  onTaken: fitQuestionBox,
});

// Drawers, whose modules come when they are first wanted.
const openHistory = drawer(() => import("./history.js"), ({ History }) => new History(byId("history"), conversation));
const openReviews = drawer(() => import("./reviews.js"), ({ Reviews }) => new Reviews(byId("reviews"), { path: inDatabase }));
const openSchema = drawer(
  () => import("./schema.js"),
  ({ Schema }) => new Schema(byId("schema"), { examples: () => examples.shown, onAsk: askOffered, path: inDatabase }),
);

/** Opens a drawer that is made of its module the first time; a module that can't be had is tried again by the next. */
function drawer(load, make) {
  let made = null;
  return async () => {
    made ??= make(await load());
    made.open();
  };
}

/** The drawer of files; its modules come when it is first wanted. */
async function filesDrawer() {
  filesDrawer.made ??= import("./files.js").then(({ Files }) => new Files(byId("files"), {
    onChange: () => databases.show(),
    onAsk: async () => {
      await databases.choose("files");
      startOver();
    },
  }));
  return filesDrawer.made;
}

/** A file that is dropped anywhere on the page is brought. */
function listenForFiles() {
  const carriesFiles = (event) => event.dataTransfer?.types.includes("Files") ?? false;
  addEventListener("dragover", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    document.body.classList.add("takes-file");
  });
  addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) document.body.classList.remove("takes-file");
  });
  addEventListener("drop", async (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    document.body.classList.remove("takes-file");
    const [file] = event.dataTransfer.files;
    const drawer = await filesDrawer();
    drawer.open();
    if (file) drawer.bring(file);
  });
}

function showState() {
  page.askButton.hidden = conversation.isRunning;
  page.stopButton.hidden = !conversation.isRunning;
  page.welcome.hidden = !conversation.isEmpty;
  page.newConversation.hidden = conversation.isEmpty;
  page.notice.hidden = true;
  titlePage(conversation.title);
}

function sayUnknown() {
  notify("unknown_conversation");
}

function notify(key) {
  setLabel(page.notice, key);
  page.notice.hidden = false;
}

/** A question that was not taken can be changed, unless another is being written. */
function giveBack(question) {
  if (page.question.value !== "") return;
  page.question.value = question;
  fitQuestionBox();
}

function askQuestion(question) {
  conversation.ask(question, {
    lang: language(),
    agent: page.agent.value || undefined,
    routing_mode: page.routingMode.value || undefined,
    database: databases.chosen ?? undefined,
  });
}

function askOffered(question) {
  if (conversation.isRunning) return;
  focusQuestion();
  askQuestion(question);
}

/** Not on a touch screen, where the keyboard would cover what there is to read. */
function focusQuestion() {
  if (matchMedia("(pointer: fine)").matches) page.question.focus();
}

function startOver() {
  conversation.startOver();
  page.question.focus();
}

// ---------------------------------------------------------------------------------------------------- question box

let recalled = 0; // which of the questions stands in the box, where one does

function submit(event) {
  event?.preventDefault();
  completions.close();
  const question = page.question.value.trim();
  page.question.focus();
  if (!question || conversation.isRunning) return;
  page.question.value = "";
  fitQuestionBox();
  askQuestion(question);
}

/** With the box empty, the arrow up brings back what was asked before, and the arrows go on from there. */
function recall(event) {
  if (event.shiftKey || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  const asked = conversation.questions;
  if (page.question.value === "") recalled = asked.length;
  else if (page.question.value !== asked[recalled]) return;
  const next = recalled + (event.key === "ArrowUp" ? -1 : 1);
  if (next < 0 || next > asked.length) return;
  event.preventDefault();
  recalled = next;
  page.question.value = asked[next] ?? "";
  fitQuestionBox();
}

function onQuestionKey(event) {
  if (completions.takesKey(event)) return;
  if (event.key === "ArrowUp" || event.key === "ArrowDown") recall(event);
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
  if (!page.settings.open) {
    conversation.stop();
    return;
  }
  const hadFocus = page.settings.contains(document.activeElement);
  page.settings.open = false;
  if (hadFocus) page.settings.querySelector("summary").focus();
}

// -------------------------------------------------------------------------------------------------------- settings

function setLanguage(chosen) {
  speak(chosen);
  for (const button of document.querySelectorAll("[data-language]")) {
    button.setAttribute("aria-pressed", String(button.dataset.language === chosen));
  }
  examples.show(chosen);
  void databases.show();
}

function setAgent(agent) {
  choose(page.agent, agent);
  setLabel(page.agentHelp, `help_agent_${page.agent.value || "default"}`);
}

function setRoutingMode(mode) {
  choose(page.routingMode, mode);
  setLabel(page.routingModeHelp, `help_${page.routingMode.value || "default"}`);
}

/** Selects an option that is there, else the server's default. */
function choose(select, value) {
  const isKnown = [...select.options].some((option) => option.value === value);
  select.value = isKnown ? value : "";
  page.settings.classList.toggle("is-changed", page.agent.value !== "" || page.routingMode.value !== "");
}

let hasSession = false;

function showKey() {
  page.keyRow.hidden = keyInUse() === null && !hasSession;
  page.keyUser.textContent = "";
  void showCaller(keyInUse());
}

async function showCaller(key) {
  // Don't ask for a key to get the name: without it, the row stays empty.
  const me = await request("me", { asksForKey: false }).catch(() => null);
  if (keyInUse() !== key) return;
  hasSession = me?.has_session ?? false;
  page.keyRow.hidden = key === null && !hasSession;
  setLabel(page.keyKind, hasSession ? "signed_in" : "key_in_use");
  page.keyUser.textContent = ((key !== null || hasSession) && me?.user_id) || "";
  page.reviews.hidden = !me?.is_reviewer;
}

function closeSettingsOutside(event) {
  if (page.settings.open && !page.settings.contains(event.target)) page.settings.open = false;
}

function listen() {
  page.composer.addEventListener("submit", submit);
  page.question.addEventListener("keydown", onQuestionKey);
  page.question.addEventListener("input", (event) => {
    fitQuestionBox();
    completions.typed(event);
  });
  page.stopButton.addEventListener("click", () => {
    conversation.stop();
    page.question.focus();
  });
  page.newConversation.addEventListener("click", startOver);
  page.history.addEventListener("click", openHistory);
  page.schema.addEventListener("click", openSchema);
  page.reviews.addEventListener("click", openReviews);
  page.files.addEventListener("click", async () => (await filesDrawer()).open());
  listenForFiles();
  page.theme.addEventListener("change", () => setTheme(page.theme.value));
  addEventListener("popstate", () => conversation.showAddressed());
  page.signOut.addEventListener("click", async () => {
    if (hasSession && !(await endSession())) {
      notify("logout_failed");
      return;
    }
    signOut();
    page.settings.open = false;
    startOver(); // the page still shows the former user's conversation
  });
  onKeyChange(() => {
    showKey();
    examples.show(language());
    void databases.show();
  });
  page.agent.addEventListener("change", () => {
    setAgent(page.agent.value);
    onThisDevice.remember("agent", page.agent.value);
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

setAgent(onThisDevice.recall("agent") ?? "");
setRoutingMode(onThisDevice.recall("routing_mode") ?? "");
setLanguage(["zh", "en"].find((known) => known === onThisDevice.recall("language")) ?? preferredLanguage());
page.theme.value = theme();
listen();
showKey();
conversation.restore();
if (failedLogin !== null) notify(`login_${failedLogin}`);
if (conversation.isEmpty) void import("./first_run.js").then(({ hintAtModels }) => hintAtModels(byId("first-run"), focusQuestion));
focusQuestion();
