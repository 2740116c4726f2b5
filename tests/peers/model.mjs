// A model that does as it is told, so that real agents run without one.
//
//   CALLS='[["echo",{"message":"x"}]]' SEEN=FILE model.mjs
//
// Serves on loopback what agents ask models by: OpenAI's chat completions and responses, Anthropic's
// messages and Gemini's contents, in one piece or as events. For as many results as a conversation has, the call after them is made, of
// the offered tool whose name ends so; when all are made it says `done`. What it was offered and
// told last is in SEEN.

import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

const CALLS = JSON.parse(process.env.CALLS);

/** What to do next: `{ name, given }`, or `{}` to say that all is done. */
function next(offered, results) {
  // Agents also ask for titles and the like, and offer nothing then.
  if (offered.length === 0) return {};
  writeFileSync(process.env.SEEN, JSON.stringify({ offered, results }));
  const [wanted, given] = CALLS[results.length] ?? [];
  const name = wanted && offered.find((tool) => tool === wanted || ['_', '.'].some((mark) => tool.endsWith(mark + wanted)));
  return { name, given };
}

const chat = {
  answer(asked, turn) {
    const offered = (asked.tools ?? []).map((tool) => tool.function.name);
    const results = asked.messages.filter(({ role }) => role === 'tool').map(({ content }) => JSON.stringify(content));
    const { name, given } = next(offered, results);
    const call = name && { index: 0, id: `call_${turn}`, type: 'function', function: { name, arguments: JSON.stringify(given) } };
    const said = call ? { role: 'assistant', content: null, tool_calls: [call] } : { role: 'assistant', content: 'done' };
    const base = { id: `c${turn}`, created: 0, model: asked.model };
    const choice = (part) => ({ ...base, choices: [{ index: 0, finish_reason: null, ...part }] });
    const reason = { finish_reason: call ? 'tool_calls' : 'stop' };
    if (!asked.stream) return { ...choice({ message: said, ...reason }), object: 'chat.completion' };
    return [choice({ delta: said }), choice({ delta: {}, ...reason })].map((chunk) => ({ ...chunk, object: 'chat.completion.chunk' }));
  },
  end: 'data: [DONE]\n\n',
};

const gemini = {
  answer(asked, turn, path) {
    const offered = (asked.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []).map(({ name }) => name);
    const parts = asked.contents.flatMap((content) => content.parts);
    const results = parts.filter((part) => part.functionResponse).map((part) => JSON.stringify(part.functionResponse.response));
    const { name, given } = next(offered, results);
    const part = name ? { functionCall: { id: `call_${turn}`, name, args: given } } : { text: 'done' };
    const reply = { candidates: [{ index: 0, finishReason: 'STOP', content: { role: 'model', parts: [part] } }], usageMetadata: { totalTokenCount: 1 } };
    return path.includes(':stream') ? [reply] : reply;
  },
  end: '',
};

const messages = {
  answer(asked, turn) {
    const offered = (asked.tools ?? []).map((tool) => tool.name);
    const blocks = asked.messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
    const results = blocks.filter(({ type }) => type === 'tool_result').map(({ content }) => JSON.stringify(content));
    const { name, given } = next(offered, results);
    const block = name ? { type: 'tool_use', id: `toolu_${turn}`, name, input: given } : { type: 'text', text: 'done' };
    const reason = { stop_reason: name ? 'tool_use' : 'end_turn', stop_sequence: null };
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: `msg_${turn}`, type: 'message', role: 'assistant', model: asked.model, usage };
    if (!asked.stream) return { ...message, content: [block], ...reason };
    const start = name ? { ...block, input: {} } : { ...block, text: '' };
    const delta = name ? { type: 'input_json_delta', partial_json: JSON.stringify(given) } : { type: 'text_delta', text: 'done' };
    return [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
      { type: 'content_block_start', index: 0, content_block: start },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: reason, usage },
      { type: 'message_stop' },
    ];
  },
  end: '',
};

const responses = {
  answer(asked, turn) {
    // Codex puts the tools of a server into a namespace.
    const spaces = (asked.tools ?? []).filter(({ type }) => type === 'namespace');
    const inner = spaces.flatMap(({ name, tools }) => tools.map((tool) => [`${name}__${tool.name}`, { namespace: name, name: tool.name }]));
    const plain = (asked.tools ?? []).filter(({ type }) => type === 'function').map(({ name }) => [name, { name }]);
    const known = new Map([...plain, ...inner]);
    const items = Array.isArray(asked.input) ? asked.input : [];
    const results = items.filter(({ type }) => /_call_output$/.test(type)).map(({ output }) => JSON.stringify(output));
    const { name, given } = next([...known.keys()], results);
    const call = name && { type: 'function_call', id: `fc_${turn}`, call_id: `call_${turn}`, ...known.get(name), arguments: JSON.stringify(given), status: 'completed' };
    const said = { type: 'message', id: `msg_${turn}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'done', annotations: [] }] };
    const item = call || said;
    const response = {
      id: `resp_${turn}`, object: 'response', created_at: 0, status: 'completed', model: asked.model, output: [item],
      usage: { input_tokens: 1, input_tokens_details: { cached_tokens: 0 }, output_tokens: 1, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 2 },
    };
    if (!asked.stream) return response;
    return [
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response },
    ];
  },
  end: '',
};

/** The API that a path belongs to. */
function apiOf(path) {
  if (path.includes('/chat/completions')) return chat;
  if (/generatecontent/i.test(path)) return gemini;
  if (/\/messages(\?|$)/.test(path)) return messages;
  if (/\/responses(\?|$)/.test(path)) return responses;
  return undefined;
}

let turn = 0;
createServer(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += chunk;
  const api = text && apiOf(request.url);
  const reply = api ? api.answer(JSON.parse(text), ++turn, request.url) : { data: [], totalTokens: 1, input_tokens: 1 };
  if (!Array.isArray(reply)) return response.setHeader('content-type', 'application/json').end(JSON.stringify(reply));
  const named = api === messages || api === responses;
  const events = reply.map((event) => `${named ? `event: ${event.type}\n` : ''}data: ${JSON.stringify(event)}\n\n`).join('');
  return response.setHeader('content-type', 'text/event-stream').end(events + api.end);
}).listen(0, '127.0.0.1', function () {
  process.stderr.write(`listening on http://127.0.0.1:${this.address().port}\n`);
});
