// A server of the 2026-07-28 era on the official 2.x SDK, for what server-everything cannot do yet.
//
//   modern-server.mjs stdio | modern-server.mjs http PORT     (POST /mcp on loopback)
//
// It carries the fixed tool, resource and prompt names of the conformance suite, and a few more
// for the client drivers. Clients of the initialize era are served too (modern-sessions.mjs).

import { createServer } from 'node:http';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import { completable, createMcpHandler, createRequestStateCodec, fromJsonSchema, isLegacyRequest, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { registerInputTools } from './modern-input.mjs';
import { registerSessionTools, sessionHandler } from './modern-sessions.mjs';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';
const NO_ARGUMENTS = z.object({});
const STATE = createRequestStateCodec({ key: 'a key of thirty-two bytes at least' });

/** Calls that were cancelled while they ran: how a test sees that a cancellation arrived. */
let cancelled = 0;
/** Publishes a change on the open `subscriptions/listen` streams; set by the HTTP entry. */
let notifier;

const text = (...lines) => ({ content: lines.map((line) => ({ type: 'text', text: line })) });
const sleep = (ms, signal) => new Promise((resume, reject) => {
  setTimeout(resume, ms);
  signal.addEventListener('abort', () => reject(new Error('cancelled')), { once: true });
});
const embedded = (uri) => ({ type: 'resource', resource: { uri, mimeType: 'text/plain', text: 'An embedded resource.' } });

function build({ era }) {
  const capabilities = { logging: {}, completions: {}, tools: { listChanged: true }, prompts: { listChanged: true }, resources: { subscribe: true, listChanged: true } };
  const server = new McpServer(
    { name: 'tapegate-modern', version: '1.0.0' },
    { capabilities, instructions: 'A server for tests.', requestState: { verify: STATE.verify } },
  );
  registerContentTools(server);
  registerLiveTools(server);
  registerHeaderTools(server);
  registerInputTools(server, STATE);
  registerResources(server);
  registerPrompts(server);
  if (era === 'legacy') registerSessionTools(server);
  return server;
}

function registerContentTools(server) {
  const tool = (name, content) => server.registerTool(name, { description: name, inputSchema: NO_ARGUMENTS }, () => ({ content }));
  tool('test_simple_text', text('This is a simple text response for testing.').content);
  tool('test_image_content', [{ type: 'image', data: PNG, mimeType: 'image/png' }]);
  tool('test_audio_content', [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }]);
  tool('test_embedded_resource', [embedded('test://embedded-resource')]);
  tool('test_multiple_content_types', [
    { type: 'text', text: 'Multiple content types test:' },
    { type: 'image', data: PNG, mimeType: 'image/png' },
    embedded('test://mixed-content-resource'),
  ]);
  server.registerTool('test_error_handling', { description: 'always fails', inputSchema: NO_ARGUMENTS }, () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
  server.registerTool('echo', { description: 'says it again', inputSchema: z.object({ message: z.string() }), outputSchema: z.object({ message: z.string() }) },
    ({ message }) => ({ ...text(message), structuredContent: { message } }));
}

function registerLiveTools(server) {
  const live = (name, run) => server.registerTool(name, { description: name, inputSchema: NO_ARGUMENTS }, (_, ctx) => run(ctx));
  live('test_tool_with_logging', async ({ mcpReq }) => {
    for (const line of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) await mcpReq.log('info', line);
    return text('logged');
  });
  live('test_logging_tool', async ({ mcpReq }) => {
    await mcpReq.log('info', 'a line');
    return text('logged');
  });
  live('test_tool_with_progress', async ({ mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100, message: `at ${progress}` } });
    }
    return text('done');
  });
  live('slow', async ({ mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken !== undefined) await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
    await sleep(5_000, mcpReq.signal).catch(() => cancelled++);
    return text('slept');
  });
  live('cancelled', async ({ mcpReq }) => {
    for (let tries = 0; tries < 50 && cancelled === 0; tries++) await sleep(100, mcpReq.signal);
    return text(String(cancelled));
  });
  live('change', () => {
    if (notifier) {
      notifier.toolsChanged();
      notifier.resourceUpdated('test://watched-resource');
    } else {
      server.sendToolListChanged();
      server.server.sendResourceUpdated({ uri: 'test://watched-resource' });
    }
    return text('changed');
  });
  live('test_trigger_tool_change', () => {
    notifier ? notifier.toolsChanged() : server.sendToolListChanged();
    return text('changed');
  });
  live('test_trigger_prompt_change', () => {
    notifier ? notifier.promptsChanged() : server.sendPromptListChanged();
    return text('changed');
  });
}

/** Parameters that the client must repeat as `Mcp-Param-*` headers. */
function registerHeaderTools(server) {
  const property = (type, header) => ({ type, 'x-mcp-header': header });
  const inputSchema = fromJsonSchema({
    type: 'object',
    properties: { region: property('string', 'Region'), priority: property('integer', 'Priority'), dry: property('boolean', 'Dry'), note: { type: 'string' } },
    required: ['region'],
  });
  server.registerTool('with_headers', { description: 'mirrors arguments into headers', inputSchema }, (args, ctx) => {
    const headers = [...(ctx.http?.req?.headers ?? [])].filter(([name]) => name.startsWith('mcp-')).sort();
    return text(JSON.stringify(args), JSON.stringify(headers));
  });
}

function registerResources(server) {
  const fixed = (name, uri, mimeType, contents) =>
    server.registerResource(name, uri, { mimeType, description: name, cacheHint: { ttlMs: 60_000, cacheScope: 'public' } }, () => ({ contents: [{ uri, mimeType, ...contents }] }));
  fixed('static-text', 'test://static-text', 'text/plain', { text: 'This is the content of the static text resource.' });
  fixed('static-binary', 'test://static-binary', 'image/png', { blob: PNG });
  fixed('watched-resource', 'test://watched-resource', 'text/plain', { text: 'Watched resource content' });
  server.registerResource('template', new ResourceTemplate('test://template/{id}/data', { list: undefined, complete: { id: () => ['123', '456'] } }),
    { mimeType: 'application/json', description: 'by id' },
    (uri, { id }) => ({ contents: [{ uri: uri.href, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true }) }] }));
}

function registerPrompts(server) {
  const user = (...contents) => ({ messages: contents.map((content) => ({ role: 'user', content })) });
  const say = (line) => ({ type: 'text', text: line });
  server.registerPrompt('test_simple_prompt', { description: 'no arguments' }, () => user(say('This is a simple prompt for testing.')));
  server.registerPrompt('test_prompt_with_arguments', {
    description: 'two arguments',
    argsSchema: z.object({ arg1: completable(z.string(), (value) => ['paris', 'park', 'party'].filter((word) => word.startsWith(value))), arg2: z.string() }),
  }, ({ arg1, arg2 }) => user(say(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)));
  server.registerPrompt('test_prompt_with_embedded_resource', { description: 'a resource', argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri }) => user(embedded(resourceUri), say('Please process the embedded resource above.')));
  server.registerPrompt('test_prompt_with_image', { description: 'an image' },
    () => user({ type: 'image', data: PNG, mimeType: 'image/png' }, say('Please analyze the image above.')));
}

const [kind, port] = process.argv.slice(2);
if (kind === 'stdio') {
  serveStdio(build);
} else {
  const handler = createMcpHandler(build, { legacy: 'reject' });
  notifier = handler.notify;
  const modern = toNodeHandler(handler);
  const sessions = sessionHandler(() => build({ era: 'legacy' }));
  const guards = [localhostHostValidation(), localhostOriginValidation()];
  createServer(async (request, response) => {
    if (!guards.every((guard) => guard(request, response))) return;
    let text = '';
    for await (const chunk of request) text += chunk;
    let body;
    try {
      body = text ? JSON.parse(text) : undefined;
    } catch {
      return response.writeHead(400).end();
    }
    const legacy = await isLegacyRequest(await toWebRequest(request, body), body);
    return (legacy ? sessions : modern)(request, response, body);
  }).listen(Number(port), '127.0.0.1', function () {
    process.stderr.write(`listening on http://127.0.0.1:${this.address().port}/mcp\n`);
  });
}
