// The TypeScript SDK clients (1.x and 2.x) use the tools of `tapegate bash`.
//
//   bash.mjs sdk1|legacy|modern  stdio CMD ARGS... | http URL
//
// Prints what bash.py prints, also for the steps in BASH_STEPS. The SDK checks every result against the tool's output schema.

import assert from 'node:assert';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';

const [era, kind, target, ...args] = process.argv.slice(2);
let changes = 0;

async function connect() {
  const info = { name: 'bash-client', version: '1' };
  if (era === 'sdk1') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const { ToolListChangedNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js');
    const client = new Client(info);
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++);
    await client.connect(kind === 'stdio' ? new StdioClientTransport({ command: target, args }) : new StreamableHTTPClientTransport(new URL(target)));
    return { client, call: (params, options) => client.callTool(params, undefined, options) };
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const client = new Client(info, { versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' } });
  client.setNotificationHandler('notifications/tools/list_changed', () => void changes++);
  await client.connect(kind === 'stdio' ? new StdioClientTransport({ command: target, args }) : new StreamableHTTPClientTransport(new URL(target)));
  return { client, call: (params, options) => client.callTool(params, options) };
}

const { client, call: callTool } = await connect();
const python = (value) => ({ null: 'None', true: 'True', false: 'False' })[String(value)] ?? value;
const print = (name, ...values) => console.log([name, ...values.map(python)].join('|'));

async function call(name, toolArguments, options) {
  const result = await callTool({ name: `bash_recorder.${name}`, arguments: toolArguments }, options);
  const text = result.content[0].text;
  if (result.structuredContent) assert.deepStrictEqual(JSON.parse(text), result.structuredContent);
  return { error: result.isError === true, text, ...result.structuredContent };
}

const saved = {};

function filled(value) {
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, filled(inner)]));
  const [, name, key] = (typeof value === 'string' && value.match(/^\$(\w+)\.(\w+)$/)) || [];
  return name ? saved[name][key] : value;
}

async function callStep(tool, step, options) {
  const name = tool.includes('bash_recorder') ? tool : `bash_recorder.${tool}`;
  try {
    const result = await callTool({ name, arguments: filled(step.arguments ?? {}), _meta: step.meta }, options);
    const text = result.content[0].text;
    if (result.structuredContent) assert.deepStrictEqual(JSON.parse(text), result.structuredContent);
    saved[step.save] = result.structuredContent;
    return { error: result.isError === true, text, recording_error: result._meta?.recording_error ?? null, ...result.structuredContent };
  } catch (error) {
    return { exception: error.message };
  }
}

async function runStep(step) {
  if (step.call) return callStep(step.call, step);
  if (step.cancel) {
    const abort = new AbortController();
    const call = callStep(step.cancel, step, { signal: abort.signal });
    await callStep('execute', { arguments: { command: `until [ -e ${step.once} ]; do :; done` } });
    abort.abort('enough');
    await call;
    return { cancelled: true };
  }
  if (step.list) return client.listTools();
  if (step.list_until) {
    for (let tries = 0; tries < 100_000; tries++) {
      const list = await client.listTools();
      if (list.tools[0].inputSchema.properties.timeout.maximum === step.list_until) return list;
    }
  }
  if (step.write) {
    writeFileSync(`${step.write}.half`, step.text);
    renameSync(`${step.write}.half`, step.write);
    return {};
  }
  return { changed: changes };
}

if (process.env.BASH_STEPS) {
  for (const step of JSON.parse(readFileSync(process.env.BASH_STEPS, 'utf8'))) console.log(JSON.stringify(await runStep(step)));
  await client.close();
  process.exit(0);
}

console.log('tools', ...(await client.listTools()).tools.map((tool) => tool.name));
const done = await call('execute', { command: 'echo out; echo err >&2; exit 3', description: 'a test' });
print('execute', done.stdout, done.stderr, done.exit_code, done.timed_out, done.recording_id.slice(0, 2));
const reports = [];
const late = await call('execute', { command: 'echo part; exec tail -f /dev/null', timeout: 2 }, { onprogress: (report) => reports.push(report.message) });
assert(reports.length > 0 && reports.every((message) => message === 'part'), String(reports));
print('timeout', late.stdout, late.exit_code, late.timed_out);
const started = await call('execute', { command: 'echo up; exec tail -f /dev/null', run_in_background: true });
const read = await call('read_output', { process_id: started.process_id, wait_seconds: 60 });
const stopped = await call('stop', { process_id: started.process_id });
print('background', read.stdout, read.running, stopped.running, stopped.signal);
const wrong = await call('execute', { command: 'pwd', working_directory: '/no/such' });
print('wrong', wrong.error, wrong.text);
const recent = await call('list_recent', { count: 2 });
print('recent', ...recent.recordings.map((one) => one.command.split(';')[0]));
const info = await call('session_info', {});
print('session', info.entry_count, info.recording_enabled, info.health.healthy);
await client.close();
process.exit(0);
