// A model that does as it is told, so that real agents run without one.
//
//   CALLS='[["echo",{"message":"x"}]]' SEEN=FILE model.mjs
//
// Serves on loopback what agents ask models by: OpenAI's chat completions and Gemini's contents, in
// one piece or as events. For as many results as a conversation has, the call after them is made, of
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
  const name = wanted && offered.find((tool) => tool === wanted || tool.endsWith(`_${wanted}`));
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

let turn = 0;
createServer(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += chunk;
  const api = request.url.includes('/chat/completions') ? chat : /generatecontent/i.test(request.url) ? gemini : undefined;
  const reply = api?.answer(JSON.parse(text), ++turn, request.url) ?? { data: [], totalTokens: 1 };
  if (!Array.isArray(reply)) return response.setHeader('content-type', 'application/json').end(JSON.stringify(reply));
  const events = reply.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  return response.setHeader('content-type', 'text/event-stream').end(events + api.end);
}).listen(0, '127.0.0.1', function () {
  process.stderr.write(`listening on http://127.0.0.1:${this.address().port}\n`);
});
