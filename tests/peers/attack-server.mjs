// A server that keeps what it did, for the attack suite: every tool that ran, one name a line; after
// `write` come its arguments as JSON.
//
//   attack-server.mjs LOG stdio | http | sse        (http and sse on loopback)
//
// `http` is the official SDK's Express app with Streamable HTTP at /mcp and, as servers for both
// generations of clients have it, HTTP+SSE at /sse and /messages. `sse` is HTTP+SSE alone, whose
// transport reads bodies itself.

import { appendFileSync } from 'node:fs';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import express from 'express';
import { z } from 'zod';

const [log, mode] = process.argv.slice(2);

function build() {
  const server = new McpServer({ name: 'attack-server', version: '1.0.0' });
  for (const name of ['safe', 'danger']) {
    server.registerTool(name, { description: name }, () => {
      appendFileSync(log, `${name}\n`);
      return { content: [{ type: 'text', text: `ran ${name}` }] };
    });
  }
  const any = z.any().optional();
  server.registerTool(
    'write',
    { description: 'write', inputSchema: { path: any, force: any, amount: any } },
    (args) => {
      appendFileSync(log, `write ${JSON.stringify(args)}\n`);
      return { content: [{ type: 'text', text: 'ran write' }] };
    },
  );
  return server;
}

/** Streamable HTTP without sessions, as in the SDK's example. */
function streamable(app) {
  app.post('/mcp', async (req, res) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    res.on('close', () => transport.close());
    await build().connect(transport);
    await transport.handleRequest(req, res, req.body);
  });
}

function legacy(app) {
  const transports = new Map();
  app.get('/sse', async (_, res) => {
    const transport = new SSEServerTransport('/messages', res);
    transports.set(transport.sessionId, transport);
    await build().connect(transport);
  });
  app.post('/messages', async (req, res) => {
    const transport = transports.get(req.query.sessionId);
    if (!transport) return res.status(404).end();
    await transport.handlePostMessage(req, res, req.body);
  });
}

if (mode === 'stdio') {
  await build().connect(new StdioServerTransport());
} else {
  const app = mode === 'http' ? createMcpExpressApp() : express();
  if (mode === 'http') streamable(app);
  legacy(app);
  const listener = app.listen(0, '127.0.0.1', () => {
    process.stderr.write(`listening on http://127.0.0.1:${listener.address().port}\n`);
  });
}
