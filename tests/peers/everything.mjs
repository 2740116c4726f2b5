// The full range of a 2025-era client against @modelcontextprotocol/server-everything.
//
// `peer` hides what the 1.x and 2.x SDKs spell differently: `onRequest(method, handler)`,
// `onNotification(method, handler)`, `call(params, options)`, `raw(method, params)` and, where the SDK
// has tasks, `task(name, args, created)`, which calls `created` once the server has the task.

const URI = 'demo://resource/dynamic/text/1';
const ELICITED = { name: 'Ada', check: true, email: 'ada@example.com', integer: 7, number: 2.5 };
const ROOTS = [{ uri: 'file:///srv/one', name: 'one' }, { uri: 'file:///srv/two', name: 'two' }];
const DATA = 'data:text/plain;base64,' + Buffer.from('tapegate '.repeat(50)).toString('base64');

/**
 * The 1.x and 2.x clients resume a stream that ended without a *result* a second later, even when it
 * brought an error, and server-everything then replays the session's other streams too, so what is
 * seen would depend on how long the run takes. Resumption has its own test.
 */
export const NO_RESUMPTION = { initialReconnectionDelay: 60_000, maxReconnectionDelay: 60_000, reconnectionDelayGrowFactor: 1, maxRetries: 0 };

export const CAPABILITIES = { roots: { listChanged: true }, sampling: {}, elicitation: { form: {}, url: {} } };

/** Registers what the client answers and what it only hears. Call before connecting. */
export function listen(peer, t) {
  peer.roots = ROOTS.slice(0, 1);
  peer.onRequest('roots/list', () => ({ roots: peer.roots }));
  peer.onRequest('sampling/createMessage', (params) => ({
    role: 'assistant',
    model: 'fixed',
    stopReason: 'endTurn',
    content: { type: 'text', text: `sampled: ${params.messages[0].content.text}` },
  }));
  peer.onRequest('elicitation/create', (params) => {
    if (params.mode === 'url') return { action: 'decline' };
    if (params.requestedSchema.properties.interpretation) return { action: 'accept', content: { interpretation: 'snake' } };
    return { action: 'accept', content: ELICITED };
  });
  for (const method of ['resources/updated', 'resources/list_changed', 'message', 'tools/list_changed', 'prompts/list_changed']) {
    peer.onNotification(`notifications/${method}`, (params) => {
      // The tools registered on `initialized` announce themselves before an HTTP client has a stream to hear it on.
      if (method !== 'tools/list_changed') t.note(method, simulated(params));
    });
  }
}

export async function run(peer, t) {
  const { client } = peer;
  await t.step('server', () => ({ info: client.getServerVersion(), capabilities: client.getServerCapabilities(), instructions: client.getInstructions() }));
  await t.until('first roots', () => t.count('message', (params) => /^Roots updated: 1/.test(params?.data)));
  const background = peer.task ? await startTasks(peer) : [];
  await tools(peer, t);
  await progress(peer, t);
  await resources(peer, t);
  await promptsAndCompletion(peer, t);
  await serverRequests(peer, t);
  await logging(peer, t);
  await errors(peer, t);
  for (const [name, result] of background) await t.step(name, () => result);
  await cancel(peer, t);
  await t.step('ping at the end', () => client.ping());
}

/** Takes the randomness out of a simulated log line: the level is drawn by the server. */
function simulated(params) {
  return /level[- ]message/.test(params?.data) ? { ...params, level: '<level>' } : params;
}

async function tools({ client }, t) {
  const call = (name, args = {}) => t.step(`call ${name} ${JSON.stringify(args).slice(0, 60)}`, () => client.callTool({ name, arguments: args }));
  await t.step('tools/list', async () => {
    const { tools } = await client.listTools();
    return tools;
  });
  await call('echo', { message: 'plain' });
  await call('echo', { message: 'quoted " back \\ slash \u0000 \u2028 é ✓ 😀 \r\n tab\t' });
  await call('echo', { message: 'long '.repeat(60_000) });
  await call('get-sum', { a: 2, b: 0.5 });
  await call('get-sum', { a: 9007199254740991, b: -1e-7 });
  await call('get-tiny-image');
  await call('get-annotated-message', { messageType: 'error', includeImage: true });
  await call('get-annotated-message', { messageType: 'debug' });
  await call('get-resource-links', { count: 5 });
  await call('get-resource-reference', { resourceType: 'Blob', resourceId: 2 });
  await call('get-structured-content', { location: 'Chicago' });
  // The environment is the server's own: only that it has one is compared.
  await t.step('call get-env', async () => 'PATH' in JSON.parse((await client.callTool({ name: 'get-env', arguments: {} })).content[0].text));
  await t.step('twenty calls at once', () =>
    Promise.all(Array.from({ length: 20 }, (_, i) => client.callTool({ name: 'echo', arguments: { message: `#${i}` } }))));
}

const long = (peer, args, options) => peer.call({ name: 'trigger-long-running-operation', arguments: args }, options);

/**
 * Progress is taken from the wire: when the last notice and the answer arrive in one chunk, the
 * SDK forgets the callback before it has called it, with or without a proxy.
 */
async function progress(peer, t) {
  await t.step('long call', async () => ({
    result: await long(peer, { duration: 0.4, steps: 4 }, { onprogress: () => {} }),
    progress: t.progress.map(({ progressToken, ...rest }) => rest),
  }));
}

/** A call that is cancelled at its first progress, long before the server would answer it. */
async function cancel(peer, t) {
  const abort = new AbortController();
  await t.step('cancelled call', () => {
    const call = long(peer, { duration: 3, steps: 3 }, { signal: abort.signal, onprogress: () => abort.abort('enough') });
    return call.then(() => 'answered', () => 'cancelled');
  });
}

async function resources({ client }, t) {
  await t.step('resources/list', () => client.listResources());
  await t.step('resources/templates/list', () => client.listResourceTemplates());
  await t.step('read text', () => client.readResource({ uri: URI }));
  await t.step('read blob', () => client.readResource({ uri: 'demo://resource/dynamic/blob/2' }));
  await t.step('read document', () => client.readResource({ uri: 'demo://resource/static/document/features.md' }));
  await t.step('set level debug', () => client.setLoggingLevel('debug'));
  await t.step('subscribe', () => client.subscribeResource({ uri: URI }));
  await t.step('updates on', () => client.callTool({ name: 'toggle-subscriber-updates', arguments: {} }));
  await t.until('resource update', () => t.count('resources/updated'));
  await t.step('updates off', () => client.callTool({ name: 'toggle-subscriber-updates', arguments: {} }));
  await t.step('unsubscribe', () => client.unsubscribeResource({ uri: URI }));
  await t.until('log of unsubscribe', () => t.count('message', (params) => /Received Unsubscribe/.test(params.data)));
  await t.step('gzip to a session resource', () => client.callTool({ name: 'gzip-file-as-resource', arguments: { name: 'a.gz', data: DATA } }));
  await t.until('list_changed', () => t.count('resources/list_changed'));
  await t.step('read session resource', () => client.readResource({ uri: 'demo://resource/session/a.gz' }));
}

async function promptsAndCompletion({ client }, t) {
  await t.step('prompts/list', () => client.listPrompts());
  await t.step('simple prompt', () => client.getPrompt({ name: 'simple-prompt' }));
  await t.step('prompt with arguments', () => client.getPrompt({ name: 'args-prompt', arguments: { city: 'Zürich', state: 'ZH' } }));
  await t.step('prompt with resource', () => client.getPrompt({ name: 'resource-prompt', arguments: { resourceType: 'Text', resourceId: '3' } }));
  const complete = (ref, argument, context) => t.step(`complete ${argument.name} ${argument.value}`, () => client.complete({ ref, argument, context }));
  await complete({ type: 'ref/prompt', name: 'completable-prompt' }, { name: 'department', value: 'S' });
  await complete({ type: 'ref/prompt', name: 'completable-prompt' }, { name: 'name', value: '' }, { arguments: { department: 'Engineering' } });
  await complete({ type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}' }, { name: 'resourceId', value: '12' });
}

async function serverRequests(peer, t) {
  const { client } = peer;
  await t.step('sampling', () => client.callTool({ name: 'trigger-sampling-request', arguments: { prompt: 'say hi', maxTokens: 10 } }));
  await t.step('elicitation', () => client.callTool({ name: 'trigger-elicitation-request', arguments: {} }));
  const url = { url: 'https://example.com/go', message: 'open it', elicitationId: 'e-1' };
  await t.step('elicitation by url', () => client.callTool({ name: 'trigger-url-elicitation', arguments: url }));
  await t.step('elicitation by error', () => client.callTool({ name: 'trigger-url-elicitation', arguments: { ...url, errorPath: true } }));
  await t.step('roots', () => client.callTool({ name: 'get-roots-list', arguments: {} }));
  peer.roots = ROOTS;
  await t.step('roots changed', () => client.sendRootsListChanged());
  await t.until('second roots', () => t.count('message', (params) => /^Roots updated: 2/.test(params.data)));
  await t.step('roots again', () => client.callTool({ name: 'get-roots-list', arguments: {} }));
}

async function logging({ client }, t) {
  await t.step('simulated log on', () => client.callTool({ name: 'toggle-simulated-logging', arguments: {} }));
  await t.until('simulated log', () => t.count('message', (params) => params.level === '<level>'));
  await t.step('simulated log off', () => client.callTool({ name: 'toggle-simulated-logging', arguments: {} }));
  await t.step('set level error', () => client.setLoggingLevel('error'));
  // Below the level now: this subscription must leave no log line.
  await t.step('subscribe quietly', () => client.subscribeResource({ uri: 'demo://resource/dynamic/text/9' }));
}

async function errors(peer, t) {
  const { client } = peer;
  await t.step('unknown tool', () => client.callTool({ name: 'no-such-tool', arguments: {} }));
  await t.step('bad arguments', () => client.callTool({ name: 'get-sum', arguments: { a: 'x' } }));
  await t.step('unknown resource', () => client.readResource({ uri: 'demo://resource/none' }));
  await t.step('unknown prompt', () => client.getPrompt({ name: 'none' }));
  await t.step('missing prompt argument', () => client.getPrompt({ name: 'args-prompt', arguments: {} }));
  await t.step('unknown method', () => peer.raw('no/such/method', { a: [1, { b: null }] }));
  await t.step('ping', () => client.ping());
}

/**
 * Tasks take seconds by design, so they run beside everything else. The first is known to the server
 * before anything else is asked: two requests by HTTP arrive in any order, and a tape has one.
 */
async function startTasks(peer) {
  let created;
  const isCreated = new Promise((resolve) => (created = resolve));
  const task = peer.task('simulate-research-query', { topic: 'python', ambiguous: true }, created);
  await Promise.race([isCreated, task.catch(() => {})]);
  const sampling = peer.client.callTool({ name: 'trigger-sampling-request-async', arguments: { prompt: 'later' } });
  sampling.catch(() => {});
  return [['task', task], ['sampling as a task of the client', sampling]];
}
