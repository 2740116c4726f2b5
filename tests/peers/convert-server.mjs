// convert-server.py on the official TypeScript SDK, with zod's converting schemas.
//
//   convert-server.mjs LOG        (on stdio; every tool that ran is kept in LOG, one line each)

import { appendFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const [log] = process.argv.slice(2);
const server = new McpServer({ name: 'convert-server', version: '1.0.0' });

const lenient = (value) => {
  try {
    return typeof value === 'string' ? JSON.parse(value) : value;
  } catch {
    return value.split(',').map((part) => part.trim());
  }
};

const toPath = (text) => {
  const path = text.startsWith('file:') ? fileURLToPath(text) : decodeURIComponent(text);
  return resolve('/', path.trim());
};

const tools = {
  a_bool: z.coerce.boolean(),
  an_int: z.coerce.number().int(),
  a_float: z.coerce.number(),
  a_str: z.coerce.string(),
  a_list: z.preprocess(lenient, z.array(z.coerce.string())),
  a_path: z.coerce.string().transform(toPath),
  an_enum: z.preprocess((value) => String(value).trim(), z.enum(['read', 'write'])),
  an_optional: z.coerce.boolean().optional(),
  a_model: z.preprocess(lenient, z.object({ amount: z.coerce.number(), force: z.coerce.boolean() })),
};

for (const [name, value] of Object.entries(tools)) {
  server.registerTool(name, { description: name, inputSchema: { value } }, (args) => {
    const text = JSON.stringify(args.value ?? null);
    appendFileSync(log, `${name} ${text}\n`);
    return { content: [{ type: 'text', text }] };
  });
}

await server.connect(new StdioServerTransport());
