// The official TypeScript SDK as a client that says what it was shown: `attack-client.mjs URL`.
//
// Prints one JSON object: the names of the tools, how a call went, and every request of the server
// that it was asked to answer.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const shown = { tools: null, call: null, asked: [] };
const client = new Client({ name: 'attack-client', version: '1.0.0' }, { capabilities: { sampling: {} } });
client.setRequestHandler(CreateMessageRequestSchema, (request) => {
  shown.asked.push(request.method);
  return { model: 'm', role: 'assistant', content: { type: 'text', text: 'told' } };
});
// What it cannot read it passes over.
client.onerror = () => {};
const patience = { timeout: 120000 };
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
try {
  shown.tools = (await client.listTools({}, patience)).tools.map((tool) => tool.name);
} catch (error) {
  shown.tools = String(error);
}
try {
  await client.callTool({ name: 'shown', arguments: {} }, undefined, patience);
  shown.call = 'answered';
} catch (error) {
  shown.call = String(error);
}
console.log(JSON.stringify(shown));
process.exit(0);
