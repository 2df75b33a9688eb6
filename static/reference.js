// Starts Swagger UI on the reference page. The page may be served below a path, so addresses are relative to it.

window.SwaggerUIBundle({
  url: new URL("openapi.json", document.baseURI).href,
  dom_id: "#reference",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  persistAuthorization: false, // a key stays in this tab's memory only
  validatorUrl: null, // sends nothing elsewhere
});
