"""The tools that models may call, with their permissions, limits, audit and transcript.

| module | what it does |
|---|---|
| `tool` | a tool and its results |
| `registry` | all tools; permission, arguments, transforms, execution and audit of one call |
| `session` | one question: its limits, its calls, its results |
| `transcript` | the messages of one question; only complete exchanges |
| `tool_limits` | how much one question may use |
| `tool_context` | the services of one question, and what is known of it beforehand |
| `first_prompt` | the first messages: instructions, what is known, the question |
| `dialogue`, `answer_text` | asking the model; its text while it is written |
| `answer` | the body of the answer |
"""
