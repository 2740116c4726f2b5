// The full range of a 2026-07-28 client against modern-server.mjs: discovery, tools with progress
// and logging, input_required rounds, subscriptions, cancellation, mirrored headers, errors.

const WATCHED = 'test://watched-resource';
const LOG_LEVEL = { 'io.modelcontextprotocol/logLevel': 'debug' };

export function listen(peer, t) {
  peer.onRequest('roots/list', () => ({ roots: [{ uri: 'file:///srv/one', name: 'one' }] }));
  peer.onRequest('sampling/createMessage', (params) => ({
    role: 'assistant',
    model: 'fixed',
    content: { type: 'text', text: `sampled: ${params.messages[0].content.text}` },
  }));
  peer.onRequest('elicitation/create', ({ requestedSchema }) => {
    const answers = { name: 'Ada', ok: true, color: 'green', context: 'a test' };
    return { action: 'accept', content: Object.fromEntries(Object.keys(requestedSchema.properties).map((key) => [key, answers[key]])) };
  });
  for (const method of ['message', 'tools/list_changed', 'resources/updated']) {
    peer.onNotification(`notifications/${method}`, (params) => t.note(method, params));
  }
}

export async function run(peer, t) {
  const { client } = peer;
  await t.step('server', () => ({
    version: client.getNegotiatedProtocolVersion(),
    info: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
  }));
  await t.step('discover again', () => peer.raw('server/discover', {}));
  await lists(client, t);
  await tools(peer, t);
  await inputRounds(client, t);
  await subscriptions(client, t);
  await cancel(peer, t);
  await errors(peer, t);
}

async function lists(client, t) {
  await t.step('tools/list', () => client.listTools());
  await t.step('resources/list', () => client.listResources());
  await t.step('resources/templates/list', () => client.listResourceTemplates());
  await t.step('prompts/list', () => client.listPrompts());
  await t.step('read text', () => client.readResource({ uri: 'test://static-text' }));
  await t.step('read binary', () => client.readResource({ uri: 'test://static-binary' }));
  await t.step('read template', () => client.readResource({ uri: 'test://template/77/data' }));
  await t.step('prompt', () => client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'ä', arg2: '2' } }));
  await t.step('prompt with image', () => client.getPrompt({ name: 'test_prompt_with_image' }));
  await t.step('complete', () => client.complete({ ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' }, argument: { name: 'arg1', value: 'par' } }));
}

async function tools(peer, t) {
  const { client } = peer;
  const call = (name, args = {}, _meta = undefined) => t.step(`call ${name}`, () => client.callTool({ name, arguments: args, _meta }));
  for (const name of ['simple_text', 'image_content', 'audio_content', 'embedded_resource', 'multiple_content_types', 'error_handling']) await call(`test_${name}`);
  await call('echo', { message: 'é ✓ 😀 \u0000 \u2028 "\\' });
  await call('echo', { message: 'long '.repeat(60_000) });
  await call('with_headers', { region: 'eu-west 1 ü', priority: 7, dry: false, note: 'not a header' });
  await call('test_tool_with_logging', {}, LOG_LEVEL);
  await call('test_tool_with_logging');
  await t.step('progress', async () => ({
    result: await peer.call({ name: 'test_tool_with_progress', arguments: {} }, { onprogress: () => {} }),
    progress: t.progress.map(({ progressToken, ...rest }) => rest),
  }));
  await t.step('twenty calls at once', () =>
    Promise.all(Array.from({ length: 20 }, (_, i) => client.callTool({ name: 'echo', arguments: { message: `#${i}` } }))));
}

async function inputRounds(client, t) {
  for (const name of ['elicitation', 'sampling', 'list_roots', 'request_state', 'multiple_inputs', 'multi_round', 'capabilities']) {
    await t.step(`input ${name}`, () => client.callTool({ name: `test_input_required_result_${name}`, arguments: {} }));
  }
  await t.step('input for a prompt', () => client.getPrompt({ name: 'test_input_required_result_prompt' }));
  await t.step('a log line, then a question', () => client.callTool({ name: 'test_streaming_elicitation', arguments: {}, _meta: LOG_LEVEL }));
}

async function subscriptions(client, t) {
  const subscription = await t.step('listen', async () => {
    const opened = await client.listen({ toolsListChanged: true, resourceSubscriptions: [WATCHED] });
    Object.defineProperty(opened, 'toJSON', { value: () => ({ honored: opened.honoredFilter }), enumerable: false });
    return opened;
  });
  const before = t.count('tools/list_changed');
  await t.step('change', () => client.callTool({ name: 'change', arguments: {} }));
  await t.until('list_changed', () => t.count('tools/list_changed') > before);
  await t.until('resource update', () => t.count('resources/updated'));
  await t.step('close subscription', () => subscription.close());
}

/** The server counts the calls that were cancelled on it, so a cancellation that got lost shows. */
async function cancel(peer, t) {
  const abort = new AbortController();
  await t.step('cancelled call', () => {
    const call = peer.call({ name: 'slow', arguments: {} }, { signal: abort.signal, onprogress: () => abort.abort('enough') });
    return call.then(() => 'answered', () => 'cancelled');
  });
  await t.step('server saw it', () => peer.client.callTool({ name: 'cancelled', arguments: {} }));
}

async function errors(peer, t) {
  const { client } = peer;
  await t.step('unknown tool', () => client.callTool({ name: 'no-such-tool', arguments: {} }));
  await t.step('bad arguments', () => client.callTool({ name: 'echo', arguments: { message: 7 } }));
  await t.step('unknown resource', () => client.readResource({ uri: 'test://none' }));
  await t.step('unknown prompt', () => client.getPrompt({ name: 'none' }));
  await t.step('unknown method', () => peer.raw('no/such/method', { a: [1, { b: null }] }));
}
