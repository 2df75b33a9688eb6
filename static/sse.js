/**
 * Reads Server-Sent Events from a `fetch` body, because EventSource can only GET, and a question is a POST.
 * Follows the WHATWG HTML specification, section "Server-sent events".
 */

const LINE_BREAK = /\r\n|\n|\r/;

/** Turns text, in pieces cut anywhere, into events `{id, data}`. */
export class EventParser {
  #unfinished = "";
  #afterCarriageReturn = false;
  #data = [];
  #id = "";

  /** Takes the next piece and returns the events it completes. */
  push(text) {
    return this.#lines(text).flatMap((line) => this.#take(line));
  }

  /** The lines that `text` completes; a CR and LF that arrive in two pieces are one line break. */
  #lines(text) {
    if (!text) return [];
    const rest = this.#afterCarriageReturn && text.startsWith("\n") ? text.slice(1) : text;
    this.#afterCarriageReturn = text.endsWith("\r");
    const lines = rest.split(LINE_BREAK);
    lines[0] = this.#unfinished + lines[0];
    this.#unfinished = lines.pop();
    return lines;
  }

  #take(line) {
    if (line === "") return this.#dispatch();
    const [, name, value] = /^([^:]*)(?::\u0020?(.*))?$/su.exec(line);
    if (name === "data") this.#data.push(value ?? "");
    if (name === "id" && !value?.includes("\0")) this.#id = value ?? "";
    return []; // the page needs no comments (fields without a name) and no other fields
  }

  #dispatch() {
    const data = this.#data.join("\n");
    this.#data = [];
    return data === "" ? [] : [{ id: this.#id, data }];
  }
}

/** The events of a response body. `onBytes` is called for every piece; comments too show that the connection lives. */
export async function* readEvents(body, onBytes) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => {}); // ignore failures: the connection may have broken already
  }
}
