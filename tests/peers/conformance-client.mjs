// The client that the suite's client scenarios start: `conformance-client.mjs ts1|ts2 URL`.
//
// It knows no scenario by name. It connects, lists and uses whatever the scenario's server offers,
// with arguments made up from each schema (or given in MCP_CONFORMANCE_CONTEXT). With PEER_PROXY set
// to a tapegate binary it goes through `record`, whose tapes land in the folder PEER_TAPES; with PEER_SHIM
// set to the words of a command, one a line, it goes through that.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_PROTOCOL_VERSION: version, MCP_CONFORMANCE_CONTEXT: context, PEER_PROXY, PEER_SHIM, PEER_TAPES } = process.env;
const [sdk, url] = process.argv.slice(2);
const capabilities = { roots: {}, sampling: {}, elicitation: { form: { applyDefaults: true } } };
const info = { name: 'tapegate-conformance', version: '1.0.0' };

const proxy = PEER_PROXY || PEER_SHIM ? await startProxy() : undefined;
try {
  const { client, transport } = sdk === 'ts1' ? await sdk1() : await sdk2();
  await client.connect(transport(new URL(proxy?.url ?? url)));
  await useAll(client);
  await client.close();
} finally {
  await proxy?.stop();
}
process.exit(0);

async function sdk1() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  const client = new Client(info, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: {} }));
  return { client, transport: (at) => new StreamableHTTPClientTransport(at) };
}

async function sdk2() {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const mode = version >= '2026-07-28' ? { pin: version } : 'legacy';
  const client = new Client(info, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', ({ params }) => ({ action: 'accept', content: example(params.requestedSchema) }));
  return { client, transport: (at) => new StreamableHTTPClientTransport(at) };
}

async function useAll(client) {
  // A scenario's server may have only one of these, or refuse some on purpose.
  const attempt = (run) => run().catch((error) => void process.stderr.write(`${scenario}: ${error.message}\n`));
  const { tools = [] } = (await attempt(() => client.listTools())) ?? {};
  const calls = JSON.parse(context || '{}').toolCalls ?? tools.map(({ name, inputSchema }) => ({ name, arguments: example(inputSchema) }));
  for (const call of calls) await attempt(() => client.callTool(call));
  const { resources = [] } = (await attempt(() => client.listResources())) ?? {};
  for (const { uri } of resources) await attempt(() => client.readResource({ uri }));
  const { prompts = [] } = (await attempt(() => client.listPrompts())) ?? {};
  for (const { name } of prompts) await attempt(() => client.getPrompt({ name, arguments: {} }));
}

/** A value for each required property; defaults are left to whoever applies them. */
function example({ properties = {}, required = [] } = {}) {
  const value = { string: 'text', integer: 5, number: 3, boolean: true, array: [], object: {} };
  return Object.fromEntries(required.filter((name) => properties[name]).map((name) => [name, properties[name].enum?.[0] ?? value[properties[name].type] ?? null]));
}

async function startProxy() {
  const tape = join(PEER_TAPES, `${scenario.replaceAll('/', '-')}-${version ?? 'any'}.jsonl`);
  const [program, ...words] = PEER_SHIM?.split('\n') ?? [PEER_PROXY, 'record', '-o', tape];
  const child = spawn(program, [...words, '--http', '127.0.0.1:0', '--upstream-http', url], { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = new Promise((resolve) => child.on('exit', resolve));
  for await (const line of createInterface({ input: child.stderr })) {
    const [, at] = /listening on (\S+)/.exec(line) ?? [];
    if (!at) continue;
    child.stderr.resume();
    return { url: at, stop: () => (child.kill('SIGTERM'), exited) };
  }
  throw new Error('the proxy ended before it listened');
}
