// Runs before anything is painted, so that a reader who chose dark does not see a light page first.
// A plain script, because modules run later.

globalThis.showTheme = (theme) => {
  const media = { dark: "screen", light: "not all" }[theme] ?? "screen and (prefers-color-scheme: dark)";
  document.getElementById("dark-colours").media = media;
};
try {
  globalThis.showTheme(JSON.parse(localStorage.getItem("citu.theme")));
} catch {
  // no storage: the system's theme
}
