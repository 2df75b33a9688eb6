/** What a run asks its reader, and the controls to answer it. */

import { element, isFocusLost, setTranslatedAttribute } from "./dom.js";
import { stringifyExact } from "./exact_json.js";
import { isObjectSchema, schemaForm, shownAnswer } from "./schema_form.js";
import { label } from "./texts.js";

const SHORT_LISTS = 12; // choices shown as buttons; more are a list to choose from

/**
 * Shows the `data` of a `question` event. `onAnswer(answer)` sends the answer and resolves to null when it was taken,
 * else to the envelope that says why not.
 */
export class UserQuestion {
  #controls;
  #prompt;
  #failure = element("p", { class: "asked-failure", role: "alert" });
  #onAnswer;
  #schema;

  constructor(data, onAnswer) {
    this.#schema = data.schema;
    this.#onAnswer = onAnswer;
    this.#controls = this.#controlsFor(data);
    this.#prompt = element("p", { class: "asked-prompt", dir: "auto" }, String(data.prompt ?? ""));
    this.#prompt.classList.toggle("visually-hidden", isSaidByFields(data));
    this.element = element("section", { class: "asked", tabindex: "-1" }, this.#prompt, this.#controls, this.#failure);
    setTranslatedAttribute(this.element, "aria-label", "asked");
  }

  /** Ends it: there is an answer, given here or elsewhere, or none is wanted any more. */
  close() {
    this.#controls.remove();
    this.#failure.remove();
    // Only the question that is open is a landmark.
    this.element.removeAttribute("aria-label");
    delete this.element.dataset.textAriaLabel;
  }

  #controlsFor({ choices, schema }) {
    const answers = choices ?? schema?.enum ?? (schema?.type === "boolean" ? [true, false] : null);
    if (isObjectSchema(schema)) return schemaForm(schema, submitButton(), (answer) => this.#send(answer));
    if (!answers?.length) return this.#field(schema);
    return answers.length > SHORT_LISTS ? this.#list(answers) : this.#buttons(answers);
  }

  #buttons(answers) {
    return element("div", { class: "asked-choices" }, ...answers.map((answer) => this.#button(answer)));
  }

  #button(answer) {
    const button = element("button", { type: "button", class: "secondary" }, shown(answer));
    button.addEventListener("click", () => this.#send(answer));
    return button;
  }

  #list(answers) {
    const options = answers.map((answer, index) => element("option", { value: String(index) }, shown(answer)));
    const list = element("select", { class: "asked-field" }, ...options);
    return this.#form(list, () => answers[Number(list.value)]);
  }

  #field(schema) {
    const field = element("input", { class: "asked-field", autocomplete: "off", required: true, dir: "auto" });
    return this.#form(field, () => answerOf(field.value, schema));
  }

  #form(field, read) {
    setTranslatedAttribute(field, "aria-label", "asked_answer");
    const form = element("form", { class: "asked-form" }, field, submitButton());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send(read());
    });
    return form;
  }

  async #send(answer) {
    const focused = this.element.contains(document.activeElement) ? document.activeElement : null;
    this.#setDisabled(true);
    this.#failure.textContent = "";
    const refusal = await this.#onAnswer(answer);
    if (focused && isFocusLost()) this.element.focus({ preventScroll: true }); // a disabled control loses it
    if (refusal === null) {
      this.close();
      this.#prompt.classList.remove("visually-hidden");
      this.element.append(element("p", { class: "asked-answer", dir: "auto" }, this.#shown(answer)));
      return;
    }
    this.#failure.replaceChildren(...said(refusal));
    this.#setDisabled(false);
    if (document.activeElement === this.element) focused.focus({ preventScroll: true });
  }

  #shown(answer) {
    return isObjectSchema(this.#schema) ? shownAnswer(this.#schema, answer) : shown(answer);
  }

  #setDisabled(isDisabled) {
    for (const control of this.#controls.querySelectorAll("button, input, select, textarea")) control.disabled = isDisabled;
  }
}

/** Whether each field asks its own part of the prompt, which would then be read twice. */
function isSaidByFields({ prompt, schema }) {
  const fields = isObjectSchema(schema) ? Object.values(schema.properties) : [];
  return fields.length > 0 && fields.every(({ title }) => title && String(prompt).includes(title));
}

function submitButton() {
  return element("button", { type: "submit", class: "secondary" }, label("asked_send"));
}

function said({ code, data }) {
  return data.is_local ? [label(`${data.error_type}_text`, { code })] : [data.error ?? data.error_type ?? ""];
}

function shown(answer) {
  if (typeof answer === "string") return answer;
  return stringifyExact(answer);
}

/** What the reader typed, as the schema wants it; what can't be read so is sent as text, and the server says why not. */
function answerOf(text, schema) {
  const types = [schema?.type ?? []].flat();
  if (!schema || types.includes("string")) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
