/** What all dialogs that open over the page have in common. */

/** Lets `dialog` be closed by its close button and by a click beside it. */
export function closable(dialog) {
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
}
