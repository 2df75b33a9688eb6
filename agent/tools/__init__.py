"""The tools that models may call, and what every flow with tools needs: permission, limits, audit, a transcript.

| module | what it does |
|---|---|
| `tool` | what a tool is, and what it answers |
| `registry` | all tools; permission, arguments, transforms, execution and audit of one call |
| `session` | one question: its limits, its calls, its results |
| `transcript` | the messages of one question; only complete exchanges |
| `limits` | how much one question may use |
| `context` | the services of one question, and what is known of it beforehand |
| `opening` | the first messages: instructions, what is known, the question |
| `dialogue`, `answer_text` | asking the model; its text while it is written |
| `answer` | the body of the answer |
"""
