// A client of the TypeScript SDK whose user is asked about calls.
//
//   asked.mjs 1|legacy|auto|modern  stdio CMD ARGS... | http URL
//
// `1` is the 1.x SDK, the rest are eras of 2.x. Makes the calls in CALLS one after the other, or all
// at once with TOGETHER, and answers the questions in the order of ANSWERS: with an elicitation
// result, with `error`, or with `never`, which waits until the question is withdrawn. Prints the
// outcomes and the questions as JSON.

const MODES = { legacy: 'legacy', auto: 'auto', modern: { pin: '2026-07-28' } };

const [era, kind, target, ...args] = process.argv.slice(2);
const info = { name: 'asked', version: '1' };
const capabilities = { elicitation: { form: {} } };
const answers = JSON.parse(process.env.ANSWERS);
const questions = [];
const [client, Stdio, Http] = era === '1' ? await first() : await second();
const transport = kind === 'stdio'
  ? new Stdio({ command: target, args, stderr: 'inherit' })
  : new Http(new URL(target));

await client.connect(transport);
const calls = JSON.parse(process.env.CALLS);
const outcomes = [];
if (process.env.TOGETHER) outcomes.push(...await Promise.all(calls.map((call) => outcome(...call))));
else for (const call of calls) outcomes.push(await outcome(...call));
process.stdout.write(JSON.stringify({ questions, outcomes }) + '\n');
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

async function answer({ params }, signal) {
  const given = answers[questions.length] ?? 'error';
  const question = { message: params.message, schema: params.requestedSchema };
  questions.push(question);
  if (given === 'error') throw new Error('no user is here');
  if (given !== 'never') return given;
  await new Promise((done) => signal.addEventListener('abort', done));
  question.withdrawn = true;
  return { action: 'cancel' };
}

async function first() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  const made = new Client(info, { capabilities });
  made.setRequestHandler(ElicitRequestSchema, (request, { signal }) => answer(request, signal));
  return [made, StdioClientTransport, StreamableHTTPClientTransport];
}

async function second() {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const made = new Client(info, { capabilities, versionNegotiation: { mode: MODES[era] } });
  made.setRequestHandler('elicitation/create', (request, ctx) => answer(request, ctx.mcpReq?.signal));
  return [made, StdioClientTransport, StreamableHTTPClientTransport];
}
