/** The plan of a draft as a picture: its sources and nodes in columns, each joined with what it is made from. */

import { element } from "./dom.js";
import { translate } from "./texts.js";

const SVG = "http://www.w3.org/2000/svg";
const BOX = { width: 190, height: 34, across: 50, down: 16 };
const MOST_CHARACTERS = 24;

/** `<figure>` for a plan's nodes; `states` says how far each is. */
export function planPicture({ nodes, target }) {
  const places = placed(nodes);
  const columns = Math.max(...[...places.values()].map(({ column }) => column)) + 1;
  const rows = Math.max(...[...places.values()].map(({ row }) => row)) + 1;
  const width = columns * (BOX.width + BOX.across) - BOX.across;
  const height = rows * (BOX.height + BOX.down) - BOX.down;
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, class: "plan", role: "img" });
  svg.setAttribute("aria-label", `${translate("draft_plan")}: ${nodes.map(described).join("; ")}`);
  for (const node of nodes) {
    for (const input of node.inputs) svg.append(line(places.get(input), places.get(node.name)));
  }
  for (const [name, place] of places) svg.append(...box(name, place, name === target));
  return element("figure", { class: "plan-place", tabindex: "0" }, svg);
}

function described({ name, inputs }) {
  return `${name} ← ${inputs.join(", ")}`;
}

/** name → its column (behind all of its inputs) and its row. */
function placed(nodes) {
  const columnOf = new Map();
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const find = (name) => {
    if (!columnOf.has(name)) {
      columnOf.set(name, 0); // a plan has no circle; if one comes, it ends here
      const inputs = byName.get(name)?.inputs ?? [];
      columnOf.set(name, inputs.length ? 1 + Math.max(...inputs.map(find)) : 0);
    }
    return columnOf.get(name);
  };
  const names = [...new Set([...nodes.flatMap((node) => node.inputs), ...nodes.map((node) => node.name)])];
  const places = new Map();
  const last = Math.max(...names.map(find));
  for (let column = 0; column <= last; column += 1) {
    const here = names.filter((name) => find(name) === column);
    const height = (name) => middle((byName.get(name)?.inputs ?? []).map((input) => places.get(input)?.row ?? 0));
    here.sort((one, other) => height(one) - height(other));
    here.forEach((name, row) => places.set(name, { column, row }));
  }
  return places;
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

function box(name, place, isTarget) {
  const { x, y } = corner(place);
  const rect = drawn("rect", { x: x + 1, y: y + 1, width: BOX.width - 2, height: BOX.height - 2, rx: 6 });
  rect.setAttribute("class", isTarget ? "plan-box target" : "plan-box");
  const text = drawn("text", { x: x + BOX.width / 2, y: y + BOX.height / 2, class: "plan-name" });
  const title = drawn("title", {});
  title.textContent = name;
  text.textContent = name.length > MOST_CHARACTERS ? `${name.slice(0, MOST_CHARACTERS - 1)}…` : name;
  rect.append(title);
  return [rect, text];
}

function line(from, to) {
  const start = corner(from);
  const end = corner(to);
  const [x1, y1] = [start.x + BOX.width, start.y + BOX.height / 2];
  const [x2, y2] = [end.x, end.y + BOX.height / 2];
  const middle = (x1 + x2) / 2;
  return drawn("path", { d: `M ${x1} ${y1} C ${middle} ${y1}, ${middle} ${y2}, ${x2} ${y2}`, class: "plan-line" });
}
