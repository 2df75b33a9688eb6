/**
 * The plan of a draft as a picture: its sources and nodes in columns, each joined with what it is made from; on narrow
 * screens below each other.
 */

import { element } from "./dom.js";
import { translate } from "./texts.js";

const SVG = "http://www.w3.org/2000/svg";
const BOX = { width: 190, height: 34, across: 50, down: 16 };
const LONG_BOX = { width: 262, height: 34, down: 12, margin: 38 };
const CHARACTER = 7.8; // the width of one, in the font of names
const SMALLEST = 0.75; // how far a picture is shrunk, so that names can be read

/** `<figure>` for a plan's nodes. */
export function planPicture({ nodes, target }) {
  const columns = columnsOf(nodes);
  return element("figure", { class: "plan-place", tabindex: "0" }, across(nodes, target, columns), downward(nodes, target, columns));
}

function across(nodes, target, columns) {
  const { places, lines } = placed(nodes, columns);
  const all = [...places.values()];
  const width = (Math.max(...all.map(({ column }) => column)) + 1) * (BOX.width + BOX.across) - BOX.across;
  const height = (Math.max(...all.map(({ row }) => row)) + 1) * (BOX.height + BOX.down) - BOX.down;
  const svg = picture(nodes, width, height, "plan across");
  svg.style.minWidth = `${width * SMALLEST}px`;
  svg.append(...lines.map((passed) => line(passed.map((name) => places.get(name)))));
  for (const name of columns.keys()) svg.append(...box(name, corner(places.get(name)), BOX, name === target));
  return svg;
}

/** One name a line, what it is made from above it. */
function downward(nodes, target, columns) {
  const names = [...columns.keys()].sort((one, other) => columns.get(one) - columns.get(other));
  const step = LONG_BOX.height + LONG_BOX.down;
  const svg = picture(nodes, LONG_BOX.margin + LONG_BOX.width, names.length * step - LONG_BOX.down, "plan down");
  const heightOf = (name) => names.indexOf(name) * step;
  for (const node of nodes) {
    for (const input of node.inputs) svg.append(bracket(heightOf(input), heightOf(node.name)));
  }
  for (const name of names) svg.append(...box(name, { x: LONG_BOX.margin, y: heightOf(name) }, LONG_BOX, name === target));
  return svg;
}

function picture(nodes, width, height, name) {
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, class: name, role: "img" });
  svg.setAttribute("aria-label", `${translate("draft_plan")}: ${nodes.map(described).join("; ")}`);
  return svg;
}

function described({ name, inputs }) {
  return `${name} ← ${inputs.join(", ")}`;
}

/** name → its column: behind all of its inputs, and next to what is made from it, as far as it can be. */
function columnsOf(nodes) {
  const inputsOf = new Map(nodes.map(({ name, inputs }) => [name, inputs]));
  const names = [...new Set([...nodes.flatMap(({ inputs }) => inputs), ...inputsOf.keys()])];
  const usersOf = (name) => nodes.filter(({ inputs }) => inputs.includes(name)).map((node) => node.name);
  const earliest = memoized((name, find) => 1 + Math.max(-1, ...(inputsOf.get(name) ?? []).map(find)));
  const latest = memoized((name, find) => {
    const users = usersOf(name);
    return users.length ? Math.min(...users.map(find)) - 1 : earliest(name);
  });
  return new Map(names.map((name) => [name, latest(name)]));
}

/** `compute(name, find)` of each name once; a plan has no circle, and if one comes, it ends at 0. */
function memoized(compute) {
  const known = new Map();
  const find = (name) => {
    if (!known.has(name)) {
      known.set(name, 0);
      known.set(name, compute(name, find));
    }
    return known.get(name);
  };
  return find;
}

/**
 * The places of all names, and the lines between them, each as the names it passes. A line that passes columns has a
 * place of its own in each, so that it runs through no box.
 */
function placed(nodes, columns) {
  const before = new Map([...columns.keys()].map((name) => [name, []]));
  const columnOf = new Map(columns);
  const lines = nodes.flatMap(({ name, inputs }) => inputs.map((input) => passing(input, name, columns)));
  for (const passed of lines) {
    passed.slice(1).forEach((name, index) => {
      if (!columnOf.has(name)) columnOf.set(name, columns.get(passed[0]) + index + 1);
      before.set(name, [...(before.get(name) ?? []), passed[index]]);
    });
  }
  const places = new Map();
  for (let column = 0; column <= Math.max(...columnOf.values()); column += 1) {
    const here = [...columnOf.keys()].filter((name) => columnOf.get(name) === column);
    const height = (name) => middle((before.get(name) ?? []).map((input) => places.get(input)?.row ?? 0));
    here.sort((one, other) => height(one) - height(other));
    here.forEach((name, row) => places.set(name, { column, row }));
  }
  return { places, lines };
}

function passing(from, to, columns) {
  const between = Math.max(0, columns.get(to) - columns.get(from) - 1);
  return [from, ...Array.from({ length: between }, (_, index) => `${from}\n${to}\n${index}`), to];
}

/** The mean of some rows, so that a node stands beside what it is made from. */
function middle(rows) {
  return rows.length ? rows.reduce((sum, row) => sum + row, 0) / rows.length : 0;
}

function drawn(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  return node;
}

function corner({ column, row }) {
  return { x: column * (BOX.width + BOX.across), y: row * (BOX.height + BOX.down) };
}

function box(name, { x, y }, { width, height }, isTarget) {
  const rect = drawn("rect", { x: x + 1, y: y + 1, width: width - 2, height: height - 2, rx: 6 });
  rect.setAttribute("class", isTarget ? "plan-box target" : "plan-box");
  const text = drawn("text", { x: x + width / 2, y: y + height / 2, class: "plan-name" });
  const title = drawn("title", {});
  const most = Math.floor(width / CHARACTER);
  title.textContent = name;
  text.textContent = name.length > most ? `${name.slice(0, most - 1)}…` : name;
  rect.append(title);
  return [rect, text];
}

function line(places) {
  const steps = [];
  for (const [index, to] of places.slice(1).entries()) {
    const start = corner(places[index]);
    const end = corner(to);
    const [x1, y1] = [start.x + BOX.width, start.y + BOX.height / 2];
    const [x2, y2] = [end.x, end.y + BOX.height / 2];
    const middle = (x1 + x2) / 2;
    steps.push(`${index ? "L" : "M"} ${x1} ${y1} C ${middle} ${y1}, ${middle} ${y2}, ${x2} ${y2}`);
  }
  return drawn("path", { d: steps.join(" "), class: "plan-line" });
}

/** A line on the left, from one height to another; the longer it is, the further out. */
function bracket(from, to) {
  const [x, y1, y2] = [LONG_BOX.margin, from + LONG_BOX.height / 2, to + LONG_BOX.height / 2];
  const out = x - Math.min(LONG_BOX.margin * 1.25, 16 + (y2 - y1) / 5);
  return drawn("path", { d: `M ${x} ${y1} C ${out} ${y1}, ${out} ${y2}, ${x} ${y2}`, class: "plan-line" });
}
