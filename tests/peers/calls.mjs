// The TypeScript SDK 1.x client, making the requests it is told to make, one after the other.
//
//   calls.mjs '[["tools/call", {"name": "x"}], ...]' CMD ARGS...

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { z } from 'zod';

const [requests, command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'calls', version: '1' }, { capabilities: {} });
await client.connect(new StdioClientTransport({ command, args, stderr: 'inherit' }));
for (const [method, params] of JSON.parse(requests)) {
  await client.request({ method, params }, z.looseObject({})).catch((error) => process.stderr.write(`${method}: ${error.message}\n`));
}
await client.close();
process.exit(0);
