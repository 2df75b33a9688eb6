/** The conversation on the page: its turns, the question being answered, and what is restored after a reload. */

import { addressedConversation, showAddress } from "./address.js";
import { request } from "./api.js";
import { Asking, newKey } from "./ask.js";
import { element } from "./dom.js";
import { failureBox } from "./failure.js";
import { inThisTab } from "./memory.js";
import { label, language } from "./texts.js";
import { Turn } from "./turn.js";

const TURNS_AT_ONCE = 20;
// Failures after which a run may exist: the same question, sent again, keeps its key so that this run answers it.
const UNKNOWN_END = new Set(["connection_lost", "stream_ended", "unreachable", "bad_answer"]);
const CONTEXT_TYPES = ["DATABASE", "CHAT"]; // of turns that say what the next question is about
const NOTHING_SAID = { conversation_id: undefined, context_type: undefined };

/**
 * Shows turns in `place`. `onChange()` is called when a question begins or ends and when turns come or go, `onAsk(question)`
 * when the reader chooses one that an answer offers, `onUnknown()` when the conversation to be shown does not exist,
 * `onUnsent(question)` when the server does not take a question as it is, because it is too long for example.
 * `onAgain()` when a failed one is asked again.
 */
export class Conversation {
  #place;
  #onChange;
  #onAsk;
  #onUnknown;
  #said = { ...NOTHING_SAID };
  #running = null; // {asking, turn}
  #lastTurn = null;
  #title = null;
  #onUnsent;
  #onAgain;
  #onRunSql = (sql, database, place) => this.runSql(sql, database, place);
  #opening = 0; // counts openings, so that a late answer to an earlier one is ignored

  constructor(place, { onChange, onAsk, onUnknown, onUnsent, onAgain }) {
    this.#place = place;
    this.#onChange = onChange;
    this.#onAsk = onAsk;
    this.#onUnknown = onUnknown;
    this.#onUnsent = onUnsent;
    this.#onAgain = onAgain;
  }

  /** Its id, or null before its first answer. */
  get id() {
    return this.#said.conversation_id ?? null;
  }

  /** What was asked in it, in order, as far as it is shown. */
  get questions() {
    return [...this.#place.querySelectorAll(".question")].map((heading) => heading.textContent);
  }

  /** What it is called: by the title that is kept, else by its first question; null before one. */
  get title() {
    return this.#title ?? this.questions[0] ?? null;
  }

  /** Shows a new title, when it was given one elsewhere on the page. */
  set title(text) {
    this.#title = text;
    this.#onChange();
  }

  get isRunning() {
    return this.#running !== null;
  }

  get isEmpty() {
    return this.#place.childElementCount === 0;
  }

  /** Asks a question of it; `options` are further fields of the request. */
  ask(question, options) {
    this.#follow({ body: bodyOf({ question, ...options }, this.#said), key: newKey(), run_id: null });
  }

  /**
   * Has SQL answered in `place` as any other question of the conversation; `database` is the name of the one it is for.
   * Nothing happens while another question is being answered.
   */
  runSql(sql, database, place) {
    if (this.#running) return;
    const options = { lang: language(), agent: "ask", routing_mode: "database_direct", database: database ?? undefined };
    this.#follow({ body: bodyOf({ question: sql, ...options }, this.#said), key: newKey(), run_id: null }, place);
  }

  /** Cancels the question being answered. */
  stop() {
    if (!this.#running) return;
    const { asking, turn } = this.#running;
    asking.stop();
    turn.show({ data: { type: "error", error_type: "stopped" } });
    this.#setRunning(null);
  }

  /** Starts a new conversation; a question being answered goes on at the server. */
  startOver() {
    this.#clear();
    showAddress(null, { isStep: true });
  }

  /** Shows an earlier conversation, which goes on from there. */
  async open(id) {
    this.#clear();
    showAddress(id, { isStep: true });
    this.#continueWith({ conversation_id: id });
    await this.#showLatest();
  }

  /** Shows what the address names now, after the reader has gone back or forth. */
  async showAddressed() {
    const id = addressedConversation();
    if (id === this.id) return;
    this.#clear();
    if (id === null) return;
    this.#continueWith({ conversation_id: id });
    await this.#showLatest();
  }

  /** Shows the conversation that the address names, and a question that a reload interrupted. */
  async restore() {
    const running = inThisTab.recall("running");
    const id = addressedConversation();
    const goesOn = Boolean(running?.body?.question) && (running.conversation_id ?? null) === id;
    const opening = this.#opening;
    if (id) {
      this.#continueWith({ conversation_id: id });
      await this.#showLatest({ mayBeNew: goesOn });
    }
    if (this.#running || opening !== this.#opening) return; // the reader has asked or opened something meanwhile
    if (goesOn && !this.#isShown(running)) this.#follow(running);
    else inThisTab.forget("running");
  }

  #clear() {
    this.#opening += 1;
    this.#running?.asking.leave();
    this.#setRunning(null);
    this.#said = { ...NOTHING_SAID };
    this.#lastTurn = null;
    this.#title = null;
    this.#place.replaceChildren();
    this.#onChange();
  }

  // ------------------------------------------------------------------------------------------- questions being answered

  /** Answers in `place`, where one is given, else in a turn after all others. */
  async #follow(question, place = null) {
    const remember = (runId) => {
      question.run_id = runId;
      inThisTab.remember("running", { ...question, conversation_id: this.id });
    };
    const asking = new Asking(question.body, { key: question.key, runId: question.run_id, onRun: remember });
    const turn = this.#startTurn(question, place, (answer) => asking.answer(answer));
    this.#setRunning({ asking, turn });
    remember(question.run_id);
    for await (const envelope of asking.envelopes()) {
      turn.show(envelope);
      if (envelope.data.error_type === "invalid_request" && place === null) this.#onUnsent(question.body.question);
      const before = this.id;
      this.#continueWith(envelope.data);
      if (this.id !== before) remember(question.run_id);
    }
    if (this.#running?.asking === asking) this.#setRunning(null);
  }

  #startTurn(question, place, onAnswer) {
    const onRetry = (failure) => this.#retry(turn, question, failure, place);
    const turn = new Turn(question.body.question, { onRetry, onAnswer, onAsk: this.#onAsk, onRunSql: this.#onRunSql });
    if (place !== null) {
      place.replaceChildren(turn.element);
      turn.element.scrollIntoView({ block: "start" });
      return turn;
    }
    this.#lastTurn?.collapse();
    this.#lastTurn = turn;
    this.#place.append(turn.element);
    this.#onChange();
    turn.element.scrollIntoView({ block: "start" });
    return turn;
  }

  #retry(turn, { body, key }, failure, place) {
    if (this.#running) return;
    turn.element.remove();
    const isSame = UNKNOWN_END.has(failure);
    const again = isSame ? { body, key, run_id: null } : { body: bodyOf(body, this.#said), key: newKey(), run_id: null };
    this.#follow(again, place);
    this.#onAgain(); // the button that had the focus is gone
  }

  #continueWith(data) {
    if (data.response_type) this.#said.context_type = contextOf(data.response_type);
    if (!data.conversation_id) return;
    this.#said.conversation_id = data.conversation_id;
    showAddress(data.conversation_id);
  }

  #setRunning(running) {
    this.#running = running;
    if (!running) inThisTab.forget("running");
    this.#onChange();
  }

  // ------------------------------------------------------------------------------------------------------- earlier turns

  /** With `mayBeNew` its first question is still being answered, and it is not kept before the answer. */
  async #showLatest({ mayBeNew = false } = {}) {
    const opening = this.#opening;
    const page = await this.#page(null, () => this.#showLatest(), mayBeNew);
    if (!page || opening !== this.#opening) return;
    const past = await this.#pastTurns();
    if (opening !== this.#opening) return;
    this.#said.context_type ??= contextOf(page.turns.findLast((turn) => !turn.failure)?.question_type);
    this.#title = page.conversation.title;
    const latest = page.turns.at(-1);
    const turns = page.turns
      .filter((turn) => !this.#isShown(turn))
      .map((turn) => past(turn, { isLatest: turn === latest && !this.#running }));
    this.#place.prepend(...earlierButton(page, (button) => this.#showEarlier(button, page.next_cursor)), ...turns);
    this.#onChange();
    if (!this.#running) turns.at(-1)?.scrollIntoView({ block: "start" });
  }

  /** Resolves to what shows an earlier turn; its module comes when there is one to show. */
  async #pastTurns() {
    const { pastTurn } = await import("./past_turn.js");
    return (turn, { isLatest = false } = {}) => pastTurn(turn, this.id, { onAsk: this.#onAsk, onRunSql: this.#onRunSql, isLatest });
  }

  #isShown({ run_id: runId }) {
    return Boolean(runId) && this.#place.querySelector(`[data-run="${CSS.escape(runId)}"]`) !== null;
  }

  async #showEarlier(button, cursor) {
    button.disabled = true;
    const page = await this.#page(cursor, () => this.#showEarlier(button, cursor));
    button.disabled = false;
    const past = await this.#pastTurns();
    if (!page || !button.isConnected) return;
    const height = document.documentElement.scrollHeight;
    const more = earlierButton(page, (next) => this.#showEarlier(next, page.next_cursor));
    button.replaceWith(...more, ...page.turns.map((turn) => past(turn)));
    scrollBy(0, document.documentElement.scrollHeight - height); // keeps the same turns in view
  }

  /** One page of turns; null when there is none, after telling the reader why. */
  async #page(cursor, again, mayBeNew = false) {
    const opening = this.#opening;
    const query = new URLSearchParams({ limit: TURNS_AT_ONCE, ...(cursor ? { cursor } : {}) });
    try {
      return await request(`conversations/${encodeURIComponent(this.id)}?${query}`);
    } catch (refusal) {
      if (opening === this.#opening && !(mayBeNew && refusal.envelope.code === 404)) this.#sayUnread(refusal.envelope, again);
      return null;
    }
  }

  #sayUnread(envelope, again) {
    if (envelope.code === 404) {
      if (this.#running) return;
      this.#clear(); // it has expired, was deleted elsewhere, or is another user's
      showAddress(null);
      this.#onUnknown();
      return;
    }
    const box = failureBox(envelope, () => {
      note.remove();
      again();
    });
    const note = element("div", { class: "unread" }, label("unread", {}, "p"), box);
    this.#place.prepend(note);
    this.#onChange();
  }
}

/** The request with what was said before; a transformation is told of no kind of question. */
function bodyOf(request, said) {
  const body = { ...request, ...said };
  return request.agent === "etl" ? { ...body, context_type: undefined, routing_mode: undefined } : body;
}

function contextOf(type) {
  return CONTEXT_TYPES.includes(type) ? type : undefined;
}

function earlierButton(page, onClick) {
  if (!page.next_cursor) return [];
  const button = element("button", { type: "button", class: "secondary earlier" }, label("earlier_turns"));
  button.addEventListener("click", () => onClick(button));
  return [button];
}
