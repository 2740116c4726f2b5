// A client of the TypeScript SDK that calls tools as tasks (2025-11-25).
//
//   tasks.mjs 1|legacy  stdio CMD ARGS...
//
// `1` is the 1.x SDK with its tasks API; 2.x has none, so `legacy` sends the requests itself. Makes the
// calls in CALLS, `[name, arguments, how]`: with `poll` the 1.x SDK asks for the state until the task has
// ended, `wait` asks for the result at once, `cancel` cancels the task, `plain` calls without a task. Prints
// the outcomes and the listed tasks as JSON.

const [era, , command, ...args] = process.argv.slice(2);
const info = { name: 'tasks', version: '1' };
const task = { ttl: 60000 };
const { client, Stdio, schemas, request } = era === '1' ? await first() : await second();

await client.connect(new Stdio({ command, args, stderr: 'inherit' }));
await client.listTools();
const outcomes = [];
for (const call of JSON.parse(process.env.CALLS)) outcomes.push(await outcome(...call));
process.stdout.write(JSON.stringify({ outcomes, listed: await listed() }) + '\n');
await client.close();
process.exit(0);

async function outcome(name, given, how) {
  const told = { name, how };
  const params = { name, arguments: given };
  if (how === 'plain') return { ...told, ...read(await request('tools/call', params, schemas.result)) };
  const { taskId, status } = await begun(params, how, told);
  told.first = status;
  if (how === 'cancel') told.cancelled = (await request('tasks/cancel', { taskId }, schemas.state)).status;
  try {
    Object.assign(told, read(await request('tasks/result', { taskId }, schemas.result)));
  } catch ({ code, message }) {
    Object.assign(told, { code, message });
  }
  told.last = (await request('tasks/get', { taskId }, schemas.state)).status;
  return told;
}

/** The new task. The 1.x SDK polls itself, and says in the end what became of it. */
async function begun(params, how, told) {
  if (era !== '1' || how !== 'poll') return (await request('tools/call', { ...params, task }, schemas.created)).task;
  let created;
  for await (const message of client.experimental.tasks.callToolStream(params, schemas.result, { task })) {
    if (message.type === 'taskCreated') created = message.task;
    if (message.type === 'result') told.streamed = read(message.result).text;
    if (message.type === 'error') told.streamed = message.error.message;
  }
  return created;
}

async function listed() {
  const all = [];
  let cursor;
  do {
    const page = await request('tasks/list', cursor === undefined ? {} : { cursor }, schemas.list);
    all.push(...page.tasks.map(({ taskId, status }) => ({ taskId, status })));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return all;
}

function read({ content, isError, _meta }) {
  const related = _meta?.['io.modelcontextprotocol/related-task']?.taskId;
  return { text: content[0].text, failed: isError ?? false, related };
}

async function first() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const types = await import('@modelcontextprotocol/sdk/types.js');
  const made = new Client(info, { capabilities: {} });
  const wanted = {
    created: types.CreateTaskResultSchema,
    state: types.GetTaskResultSchema,
    result: types.CallToolResultSchema,
    list: types.ListTasksResultSchema,
  };
  const ask = (method, params, schema) => made.request({ method, params }, schema);
  return { client: made, Stdio: StdioClientTransport, schemas: wanted, request: ask };
}

async function second() {
  const { Client } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const { z } = await import('zod');
  const made = new Client(info, { capabilities: {}, versionNegotiation: { mode: 'legacy' } });
  const state = z.looseObject({ taskId: z.string(), status: z.string(), ttl: z.number().nullable() });
  const wanted = {
    created: z.looseObject({ task: state }),
    state,
    result: z.looseObject({ content: z.array(z.any()) }),
    list: z.looseObject({ tasks: z.array(state), nextCursor: z.string().optional() }),
  };
  const ask = (method, params, schema) => made.request({ method, params }, schema);
  return { client: made, Stdio: StdioClientTransport, schemas: wanted, request: ask };
}
