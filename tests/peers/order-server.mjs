// A server on the official 2.x SDK, of both eras, whose answers overtake each other.
//
//   order-server.mjs stdio
//
// Everything it says has a moment of its own, so that no client reads two messages at once.

import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const GAP_MS = 80;

const text = (line) => ({ content: [{ type: 'text', text: line }] });
const gaps = (count) => new Promise((resume) => setTimeout(resume, count * GAP_MS));

serveStdio(() => {
  const server = new McpServer({ name: 'order-server', version: '1.0.0' }, { capabilities: { tools: {} } });
  server.registerTool('wait', { description: 'waits', inputSchema: z.object({ name: z.string(), gaps: z.number() }) }, async (args) => {
    await gaps(args.gaps);
    return text(args.name);
  });
  server.registerTool('steps', { description: 'tells its progress', inputSchema: z.object({ name: z.string(), first: z.number() }) }, async (args, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    await gaps(args.first);
    for (const progress of [1, 2, 3]) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 3 } });
      await gaps(2);
    }
    return text(args.name);
  });
  return server;
});
