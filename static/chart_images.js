/** Takes a chart away as a picture of what is seen: PNG, and SVG with its texts as texts. Both are drawn in the browser. */

import { at } from "./address.js";
import { fileName, offer } from "./downloads.js";
import { element, glyph, whileDisabled } from "./dom.js";
import { label, setLabel } from "./texts.js";

const SVG_LIBRARY = at("static/vendor/svgcanvas-2.6.0.esm.js");
const SHARPNESS = 2; // dots of a PNG file per pixel of the page
const DRAW = { png: drawnPng, svg: drawnSvg };

/** A button for a picture of `chart`, a `ResultChart`, as `format` `png` or `svg`. */
export function pictureButton(format, chart, question) {
  const name = { format: format.toUpperCase() };
  const text = label("download", name);
  const button = element("button", { type: "button", class: "quiet", "data-picture": format }, glyph("download"), text);
  const take = async () => {
    const picture = await DRAW[format](chart).catch(() => null);
    if (picture !== null) offer(picture, fileName(question || chart.title, format));
    setLabel(text, picture === null ? "download_failed" : "download", name);
  };
  button.addEventListener("click", () => whileDisabled(button, take));
  return button;
}

async function drawnPng(chart) {
  const { width, height } = chart.size;
  const canvas = element("canvas", { width, height });
  const drawing = chart.drawOn(globalThis.Chart, canvas, { width, height, ratio: SHARPNESS });
  const picture = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  drawing.destroy();
  return picture;
}

async function drawnSvg(chart) {
  const { Context } = await import(SVG_LIBRARY);
  const size = chart.size;
  const context = new Context({ ...size, document });
  const drawing = chart.drawOn(globalThis.Chart, recorder(context, size), size);
  const picture = new Blob([context.getSerializedSvg(true)], { type: "image/svg+xml" });
  drawing.destroy();
  return picture;
}

/** A canvas that records in `context` what is drawn. */
function recorder(context, { width, height }) {
  const canvas = element("canvas", { width, height });
  canvas.getContext = () => context;
  Object.defineProperty(context, "canvas", { value: canvas });
  return canvas;
}
