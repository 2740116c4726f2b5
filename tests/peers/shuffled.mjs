// The TypeScript SDK 2.x client with calls that do not depend on each other, in an order of chance.
//
//   shuffled.mjs SEED  stdio CMD ARGS... | http URL
//
// Some are made one by one and the rest at once. The transcript is sorted, so it is the same for
// every seed.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { NO_RESUMPTION } from './everything.mjs';
import { tap, Transcript } from './transcript.mjs';

const [seed, kind, target, ...args] = process.argv.slice(2);
const t = new Transcript();
const client = new Client({ name: 'shuffled', version: seed }, { capabilities: {}, versionNegotiation: { mode: 'legacy' } });
const transport = {
  stdio: () => new StdioClientTransport({ command: target, args, stderr: 'inherit' }),
  http: () => new StreamableHTTPClientTransport(new URL(target), { reconnectionOptions: NO_RESUMPTION }),
}[kind]();

const call = (name, args) => [`call ${name} ${JSON.stringify(args)}`, () => client.callTool({ name, arguments: args })];
const steps = [
  ...Array.from({ length: 30 }, (_, n) => call('echo', { message: `message ${n}` })),
  ...Array.from({ length: 20 }, (_, n) => call('get-sum', { a: n, b: n * n })),
  ...['Chicago', 'New York', 'Los Angeles'].map((location) => call('get-structured-content', { location })),
  call('get-tiny-image', {}),
  call('no-such-tool', { n: 1 }),
  ['tools', () => client.listTools()],
  ['resources', () => client.listResources()],
  ['templates', () => client.listResourceTemplates()],
  ['prompts', () => client.listPrompts()],
  ['document', () => client.readResource({ uri: 'demo://resource/static/document/features.md' })],
  ['prompt', () => client.getPrompt({ name: 'args-prompt', arguments: { city: 'Zürich', state: 'ZH' } })],
  ['simple prompt', () => client.getPrompt({ name: 'simple-prompt' })],
];

/** Numbers from a seed, the same on every run. */
function* numbers(state) {
  for (;;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

const chance = numbers(Number(seed));
for (let place = steps.length - 1; place > 0; place--) {
  const other = Math.floor(chance.next().value * (place + 1));
  [steps[place], steps[other]] = [steps[other], steps[place]];
}

await client.connect(tap(transport, t));
const half = steps.length >> 1;
for (const [name, run] of steps.slice(0, half)) await t.step(name, run);
await Promise.all(steps.slice(half).map(([name, run]) => t.step(name, run)));
if (kind === 'http') await transport.terminateSession();
await client.close();
t.steps.sort((one, two) => (one.step < two.step ? -1 : 1));
t.print();
process.exit(0);
