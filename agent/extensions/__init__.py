"""Extensions add to Citu without changing it.

`points` has the extension points, `loading` makes the extensions that the settings name. Citu's own
extensions are registered in the same way.

| module | point | what it does |
|---|---|---|
| `commands` | `WorkflowHandler` | `/help`, `/reset`, `/schema`, and fixed reports of the semantic
file |
| `daily_quota` | `LifecycleHook` | questions of one user per day |
| `second_model` | `LlmMiddleware` | asks another model when the first fails |
| `response_cache` | `LlmMiddleware` | gives a reply again when the same messages come again |
| `turn_budget` | `ConversationFilter` | how many earlier turns a question looks back on |
| `trace` | `ToolContextEnricher` | the request's id |
| `notes_file` | `LlmContextEnhancer` | the operator's notes, as data beside the question |
| `span_log` | `ObservabilityProvider` | a log line for each span |
"""
