/** A form for a JSON Schema of an object: a group of radio buttons for each list of choices, a text field for others. */

import { element } from "./dom.js";

const LINES = { least: 3, most: 20 }; // of SQL that are seen at once

let groups = 0;

/** Whether `schema` is one that this module makes a form for. */
export function isObjectSchema(schema) {
  return hasType(schema, "object") && typeof schema.properties === "object";
}

/** What a given answer says, in the words of its form. */
export function shownAnswer(schema, answer) {
  const parts = Object.entries(answer).map(([name, value]) => shownValue(schema.properties[name], value));
  return parts.join(" · ");
}

function shownValue(schema, value) {
  if (typeof value === "object") return Object.keys(value).join(", ");
  const place = schema?.enum?.indexOf(value) ?? -1;
  return schema?.["x-labels"]?.[place] ?? String(value);
}

function hasType(schema, name) {
  return [schema?.type].flat().includes(name);
}

/** `<form>`; `onSubmit(answer)` gets an object of what was filled in. */
export function schemaForm(schema, submit, onSubmit) {
  const fields = Object.entries(schema.properties).map(([name, of]) => fieldOf(name, of, isRequired(schema, name)));
  const form = element("form", { class: "asked-object" }, ...fields.map(({ node }) => node), submit);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    onSubmit(Object.fromEntries(fields.flatMap(({ name, read }) => (read() == null ? [] : [[name, read()]]))));
  });
  return form;
}

function isRequired(schema, name) {
  return (schema.required ?? []).includes(name);
}

function fieldOf(name, schema, required) {
  if (schema.enum) return choices(name, schema, required);
  if (isObjectSchema(schema)) return texts(name, schema);
  return text(name, schema, required);
}

function choices(name, schema, required) {
  const group = `asked-${++groups}`;
  const labels = schema["x-labels"] ?? [];
  const inputs = schema.enum.map((value, index) => {
    const input = element("input", { type: "radio", name: group, value: String(index), required });
    const shown = element("span", { dir: "auto" }, labels[index] ?? String(value));
    return { input, node: element("label", { class: "asked-radio" }, input, shown) };
  });
  const legend = element("legend", { class: schema.title ? "" : "visually-hidden", dir: "auto" }, schema.title ?? name);
  const node = element("fieldset", { class: "asked-group" }, legend, ...inputs.map((each) => each.node));
  const read = () => {
    const chosen = inputs.findIndex(({ input }) => input.checked);
    return chosen < 0 ? null : schema.enum[chosen];
  };
  return { name, node, read };
}

function text(name, schema, required) {
  const area = element("textarea", { rows: 2, class: "asked-field", required, dir: "auto" });
  const node = element("label", {}, element("span", {}, schema.title ?? name), area);
  return { name, node, read: () => area.value.trim() || null };
}

/** An object of texts, folded away: SQL for each node of a draft. */
function texts(name, schema) {
  const areas = Object.entries(schema.properties).map(([key, of]) => {
    const value = of.default ?? "";
    const rows = Math.min(Math.max(value.split("\n").length, LINES.least), LINES.most);
    const area = element("textarea", { rows, class: "asked-field code", spellcheck: "false" });
    area.value = value;
    return { key, area, before: area.value, node: element("label", {}, element("code", {}, key), area) };
  });
  const title = element("summary", {}, schema.title ?? name);
  const node = element("details", { class: "tool-fold" }, title, ...areas.map((each) => each.node));
  const read = () => {
    const changed = areas.filter(({ area, before }) => area.value.trim() && area.value !== before);
    return changed.length ? Object.fromEntries(changed.map(({ key, area }) => [key, area.value])) : null;
  };
  return { name, node, read };
}
