// Runs AG-UI's own client, which verifies the order of events: one line of JSON for each run that it was given.
// Usage: node agui_client.mjs URL PACKAGE < inputs.jsonl
import { createInterface } from "node:readline";

const [url, client] = process.argv.slice(2);
const { HttpAgent } = await import(client);

for await (const line of createInterface({ input: process.stdin })) {
  const { threadId, messages, leave, ...parameters } = JSON.parse(line);
  const agent = new HttpAgent({ url, threadId });
  agent.setMessages(messages ?? []);
  const seen = [];
  const outcome = { seen, state: null, said: [], error: null };
  try {
    await agent.runAgent(parameters, {
      onEvent: ({ event }) => {
        seen.push(event);
        if (event.type === leave) agent.abortRun();
      },
    });
    outcome.state = agent.state;
    outcome.said = agent.messages.filter((message) => message.role === "assistant").map((message) => message.content);
  } catch (error) {
    outcome.error = String(error);
  }
  process.stdout.write(JSON.stringify(outcome) + "\n");
}
