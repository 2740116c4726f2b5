// A client of the TypeScript SDK that takes a call back while its user is asked about it.
//
//   withdraw.mjs stdio CMD ARGS...
//
// Prints whether the question was withdrawn, and whether the call has failed.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [, command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'asked', version: '1' }, { capabilities: { elicitation: {} } });
const call = new AbortController();
const withdrawn = new Promise((done) => {
  client.setRequestHandler(ElicitRequestSchema, (_, { signal }) => new Promise((answer) => {
    signal.addEventListener('abort', () => { done(true); answer({ action: 'cancel' }); });
    call.abort('the user has changed their mind');
  }));
});
await client.connect(new StdioClientTransport({ command, args, stderr: 'inherit' }));
const failed = await client.callTool({ name: 'test_simple_text', arguments: {} }, CallToolResultSchema, { signal: call.signal }).then(() => false, () => true);
process.stdout.write(JSON.stringify({ withdrawn: await withdrawn, failed }) + '\n');
await client.close();
process.exit(0);
