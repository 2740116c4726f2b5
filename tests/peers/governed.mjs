// A client of the TypeScript SDK in front of a policy that does not let everything pass.
//
//   governed.mjs 1|legacy|auto|modern  stdio CMD ARGS... | http URL
//
// `1` is the 1.x SDK, the rest are eras of 2.x. Prints as JSON what it was offered and what came of
// each call in CALLS, which the test reads: [name, arguments] pairs, made one after the other.

const MODES = { legacy: 'legacy', auto: 'auto', modern: { pin: '2026-07-28' } };

const [era, kind, target, ...args] = process.argv.slice(2);
const info = { name: 'governed', version: '1' };
const [client, Stdio, Http] = era === '1' ? await first() : await second();
const transport = kind === 'stdio'
  ? new Stdio({ command: target, args, stderr: 'inherit' })
  : new Http(new URL(target));

await client.connect(transport);
const { tools } = await client.listTools();
const outcomes = [];
for (const [name, given] of JSON.parse(process.env.CALLS)) outcomes.push(await outcome(name, given));
process.stdout.write(JSON.stringify({ offered: tools.map((tool) => tool.name), outcomes }) + '\n');
await client.close();
process.exit(0);

async function outcome(name, given) {
  try {
    const { content, isError } = await client.callTool({ name, arguments: given });
    return { name, text: content[0].text, failed: isError ?? false };
  } catch ({ code, message, data }) {
    return { name, code, message, data };
  }
}

async function first() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  return [new Client(info), StdioClientTransport, StreamableHTTPClientTransport];
}

async function second() {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const options = { versionNegotiation: { mode: MODES[era] } };
  return [new Client(info, options), StdioClientTransport, StreamableHTTPClientTransport];
}
