// The order in which a TypeScript client hears of progress and of answers that overtake each other.
//
//   order.mjs 1|legacy|modern  stdio CMD ARGS... | http URL
//
// `1` is the SDK 1.x, the others are the eras of 2.x. Progress counts when the caller's callback is
// called, as a program sees it.

import { Transcript } from './transcript.mjs';

const [era, kind, target, ...args] = process.argv.slice(2);
const t = new Transcript();

async function sdk1() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const client = new Client({ name: 'order', version: '1' }, { capabilities: {} });
  return { client, StdioClientTransport, StreamableHTTPClientTransport, call: (params, options) => client.callTool(params, undefined, options) };
}

async function sdk2() {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const mode = era === 'modern' ? { pin: '2026-07-28' } : 'legacy';
  const client = new Client({ name: 'order', version: '2' }, { capabilities: {}, versionNegotiation: { mode } });
  return { client, StdioClientTransport, StreamableHTTPClientTransport, call: (params, options) => client.callTool(params, options) };
}

const { client, StdioClientTransport, StreamableHTTPClientTransport, call } = era === '1' ? await sdk1() : await sdk2();
const transport = kind === 'stdio'
  ? new StdioClientTransport({ command: target, args, stderr: 'inherit' })
  : new StreamableHTTPClientTransport(new URL(target));

/** Runs a step in which calls note what they hear, in the order in which they hear it. */
const heard = (name, run) => t.step(name, async () => {
  const order = [];
  const wait = async (name, gaps) => order.push((await call({ name: 'wait', arguments: { name, gaps } })).content[0].text);
  const steps = async (name, first) => {
    const onprogress = ({ progress }) => order.push(`${name} at ${progress}`);
    order.push((await call({ name: 'steps', arguments: { name, first } }, { onprogress })).content[0].text);
  };
  await run(wait, steps);
  return order;
});

await client.connect(transport);
await t.step('tools/list', () => client.listTools());
await heard('progress', (_, steps) => steps('alone', 0));
await heard('answers overtake', (wait) => Promise.all([wait('slow', 5), wait('quick', 1), wait('middle', 3)]));
await heard('calls while one is open', async (wait) => {
  const open = wait('open', 8);
  for (const name of ['one', 'two', 'three']) await wait(name, 1);
  await open;
});
await heard('progress of two', (wait, steps) => Promise.all([steps('even', 0), steps('odd', 1), wait('quick', 2.5)]));
await heard('progress again', (_, steps) => steps('again', 0));
await client.close();
t.print();
process.exit(0);
