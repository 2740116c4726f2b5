// The initialize era of modern-server.mjs over HTTP, with sessions: server-initiated requests on a
// call's own stream, a server stream by GET, event ids, and streams that end early to be resumed.

import { randomUUID } from 'node:crypto';
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { z } from 'zod';

const NO_ARGUMENTS = z.object({});
const RETRY_MS = 300;

/** Keeps every event of a session, by stream, so that a stream can be resumed. */
class EventStore {
  events = [];

  async storeEvent(streamId, message) {
    this.events.push({ streamId, message });
    return String(this.events.length - 1);
  }

  async getStreamIdForEventId(eventId) {
    return this.events[Number(eventId)]?.streamId;
  }

  async replayEventsAfter(lastEventId, { send }) {
    const { streamId } = this.events[Number(lastEventId)];
    for (const [index, event] of this.events.entries()) {
      if (index > Number(lastEventId) && event.streamId === streamId && event.message.jsonrpc) await send(String(index), event.message);
    }
    return streamId;
  }
}

/** A Node handler that keeps one server, made by `build`, for each session. */
export function sessionHandler(build) {
  const sessions = new Map();
  return async (request, response, body) => {
    const id = request.headers['mcp-session-id'];
    const known = sessions.get(id);
    if (known) return known.handleRequest(request, response, body);
    if (id) return response.writeHead(404).end();
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: new EventStore(),
      retryInterval: RETRY_MS,
      onsessioninitialized: (session) => void sessions.set(session, transport),
      onsessionclosed: (session) => void sessions.delete(session),
    });
    await build().connect(transport);
    return transport.handleRequest(request, response, body);
  };
}

/** What only this era can do: ask the client in the middle of a call. */
export function registerSessionTools(server) {
  const text = (line) => ({ content: [{ type: 'text', text: line }] });
  const tool = (name, inputSchema, run) => server.registerTool(name, { description: name, inputSchema }, run);
  tool('test_sampling', z.object({ prompt: z.string() }), async ({ prompt }, { mcpReq }) => {
    const { content } = await mcpReq.requestSampling({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 100 });
    return text(`LLM response: ${content.text}`);
  });
  const elicit = (name, properties, required = []) => tool(name, z.object({ message: z.string().optional() }), async ({ message }, { mcpReq }) => {
    const answer = await mcpReq.elicitInput({ message: message ?? name, requestedSchema: { type: 'object', properties, required } });
    return text(`Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`);
  });
  elicit('test_elicitation', { username: { type: 'string' }, email: { type: 'string' } }, ['username', 'email']);
  elicit('test_elicitation_sep1034_defaults', {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  });
  const titled = [1, 2, 3].map((n) => ({ const: `value${n}`, title: `Option ${n}` }));
  const values = titled.map((option) => option.const);
  elicit('test_elicitation_sep1330_enums', {
    untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
    titledSingle: { type: 'string', oneOf: titled },
    legacyEnum: { type: 'string', enum: values, enumNames: titled.map((option) => option.title) },
    untitledMulti: { type: 'array', items: { type: 'string', enum: values } },
    titledMulti: { type: 'array', items: { anyOf: titled } },
  });
  tool('test_reconnection', NO_ARGUMENTS, async (_, { http }) => {
    http?.closeSSE?.();
    await new Promise((resume) => setTimeout(resume, 100));
    return text('Reconnected');
  });
  for (const method of ['resources/subscribe', 'resources/unsubscribe']) server.server.setRequestHandler(method, () => ({}));
}
