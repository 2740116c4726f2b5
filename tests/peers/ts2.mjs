// The TypeScript SDK 2.x client, both eras.
//
//   ts2.mjs legacy|auto|modern  stdio CMD ARGS... | http URL | sse URL
//
// `legacy` runs the full range against server-everything; `modern` pins 2026-07-28 and `auto`
// probes for it, both against modern-server.mjs.

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { z } from 'zod';
import * as everything from './everything.mjs';
import * as modern from './modern.mjs';
import { tap, Transcript } from './transcript.mjs';

const MODES = { legacy: 'legacy', auto: 'auto', modern: { pin: '2026-07-28' } };

const [era, kind, target, ...args] = process.argv.slice(2);
const scenario = era === 'legacy' ? everything : modern;
const t = new Transcript();
const client = new Client(
  { name: 'ts2', version: '1' },
  { capabilities: everything.CAPABILITIES, versionNegotiation: { mode: MODES[era] } },
);
const peer = {
  client,
  onRequest: (method, handler) => client.setRequestHandler(method, (request) => {
    t.note(method, request.params);
    return handler(request.params);
  }),
  onNotification: (method, handler) => client.setNotificationHandler(method, ({ params }) => handler(params)),
  call: (params, options) => client.callTool(params, options),
  raw: (method, params) => client.request({ method, params }, z.looseObject({})),
};

const transport = {
  stdio: () => new StdioClientTransport({ command: target, args, stderr: 'inherit' }),
  http: () => new StreamableHTTPClientTransport(new URL(target), { reconnectionOptions: everything.NO_RESUMPTION }),
  sse: () => new SSEClientTransport(new URL(target)),
}[kind]();
scenario.listen(peer, t);
await client.connect(tap(transport, t));
await scenario.run(peer, t);
if (kind === 'http' && era === 'legacy') await transport.terminateSession();
await client.close();
t.print();
process.exit(0);
