// The TypeScript SDK 1.x client (initialize era) through its full range.
//
//   ts1.mjs stdio CMD ARGS... | http URL | sse URL
//
// Prints a transcript (transcript.mjs); PEER_WIRE names a file for the raw messages.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { CAPABILITIES, listen, NO_RESUMPTION, run } from './everything.mjs';
import { tap, Transcript } from './transcript.mjs';

const REQUESTS = {
  'roots/list': types.ListRootsRequestSchema,
  'sampling/createMessage': types.CreateMessageRequestSchema,
  'elicitation/create': types.ElicitRequestSchema,
};
const NOTIFICATIONS = {
  'notifications/message': types.LoggingMessageNotificationSchema,
  'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
  'notifications/resources/list_changed': types.ResourceListChangedNotificationSchema,
  'notifications/tools/list_changed': types.ToolListChangedNotificationSchema,
  'notifications/prompts/list_changed': types.PromptListChangedNotificationSchema,
};

const [kind, target, ...args] = process.argv.slice(2);
const t = new Transcript();
const tasks = { list: {}, cancel: {}, requests: { sampling: { createMessage: {} } } };
const client = new Client(
  { name: 'ts1', version: '1' },
  { capabilities: { ...CAPABILITIES, tasks }, taskStore: new InMemoryTaskStore() },
);

/** Answers at once, or as a task when the server asked for one. */
const answer = (handler) => async (request, extra) => {
  const result = handler(request.params);
  if (!request.params?.task) return result;
  const task = await extra.taskStore.createTask({ ttl: request.params.task.ttl });
  await extra.taskStore.storeTaskResult(task.taskId, 'completed', result);
  return { task };
};

const peer = {
  client,
  onRequest: (method, handler) => client.setRequestHandler(REQUESTS[method], (request, extra) => {
    t.note(method, request.params);
    return answer(handler)(request, extra);
  }),
  onNotification: (method, handler) => client.setNotificationHandler(NOTIFICATIONS[method], ({ params }) => handler(params)),
  call: (params, options) => client.callTool(params, undefined, options),
  raw: (method, params) => client.request({ method, params }, types.ResultSchema),
  /** How often the SDK polls is its own affair; that a task was made and what came of it is ours. */
  async task(name, args, created) {
    const kinds = new Set();
    let result;
    for await (const message of client.experimental.tasks.callToolStream({ name, arguments: args }, types.CallToolResultSchema, { task: { ttl: 60_000 } })) {
      created();
      kinds.add(message.type);
      result = message.result ?? message.error ?? result;
    }
    return { kinds: [...kinds], result };
  },
};

const transport = {
  stdio: () => new StdioClientTransport({ command: target, args, stderr: 'inherit' }),
  http: () => new StreamableHTTPClientTransport(new URL(target), { reconnectionOptions: NO_RESUMPTION }),
  sse: () => new SSEClientTransport(new URL(target)),
}[kind]();
listen(peer, t);
await client.connect(tap(transport, t));
await run(peer, t);
if (kind === 'http') await transport.terminateSession();
await client.close();
t.print();
process.exit(0);
