// A client of the TypeScript SDK that makes calls as it is told, on standard input, a line each:
//
//   held-calls.mjs CMD ARGS...
//   {"id":1,"tool":"echo","arguments":{"message":"x"}}     makes a call
//   {"cancel":1}                                           takes it back
//   {"answer":1,"decision":"approve"}                      answers a question
//
// Prints `{"ready":true}` once it is connected, and each outcome as `{"id":1,"result":...}` or
// `{"id":1,"error":...}`. Questions to its user are printed as `{"asked":1,"question":...}`.

import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'held-calls', version: '1' }, { capabilities: { elicitation: {} } });
const calls = new Map();
const questions = [];
const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

client.setRequestHandler(ElicitRequestSchema, ({ params }) => new Promise((answer) => {
  questions.push(answer);
  print({ asked: questions.length, question: params.message });
}));
await client.connect(new StdioClientTransport({ command, args, stderr: 'inherit' }));
print({ ready: true });
for await (const line of createInterface({ input: process.stdin })) {
  const { id, tool, arguments: given, cancel, answer, decision } = JSON.parse(line);
  if (answer !== undefined) {
    questions[answer - 1]({ action: 'accept', content: { decision } });
    continue;
  }
  if (cancel !== undefined) {
    calls.get(cancel).abort('the user has changed their mind');
    continue;
  }
  const call = new AbortController();
  calls.set(id, call);
  client.callTool({ name: tool, arguments: given }, CallToolResultSchema, { signal: call.signal, timeout: 600_000 })
    .then((result) => print({ id, result }), ({ code, message }) => print({ id, error: { code, message } }));
}
await client.close();
process.exit(0);
