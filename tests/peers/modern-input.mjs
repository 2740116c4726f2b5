// Tools and a prompt of the modern server that need something from the client first: they answer
// `input_required`, and the client calls again with the answers and the state it was given.

import { acceptedContent, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { z } from 'zod';

const NAME = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const NO_ARGUMENTS = z.object({});

const text = (line) => ({ content: [{ type: 'text', text: line }] });
const askName = (message = 'What is your name?') => inputRequired.elicit({ message, requestedSchema: NAME });
const askConfirm = () => inputRequired.elicit({ message: 'Please confirm', requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] } });
const askModel = (prompt = 'What is the capital of France?') =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 100 });

export function registerInputTools(server, state) {
  const tool = (name, run) => server.registerTool(`test_input_required_result_${name}`, { description: name, inputSchema: NO_ARGUMENTS }, (_, ctx) => run(ctx.mcpReq, ctx));

  tool('elicitation', ({ inputResponses }) => {
    const user = acceptedContent(inputResponses, 'user_name', z.object({ name: z.string() }));
    return user ? text(`Hello, ${user.name}!`) : inputRequired({ inputRequests: { user_name: askName() } });
  });
  tool('sampling', ({ inputResponses }) => {
    const answer = inputResponse(inputResponses, 'capital_question');
    return answer.kind === 'sampling' ? text(JSON.stringify(answer.result.content)) : inputRequired({ inputRequests: { capital_question: askModel() } });
  });
  tool('list_roots', ({ inputResponses }) => {
    const answer = inputResponse(inputResponses, 'client_roots');
    return answer.kind === 'roots' ? text(`roots: ${JSON.stringify(answer.roots)}`) : inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
  });
  for (const name of ['request_state', 'tampered_state']) {
    tool(name, async ({ inputResponses, requestState }, ctx) => {
      if (acceptedContent(inputResponses, 'confirm') && requestState()) return text('state-ok');
      return inputRequired({ inputRequests: { confirm: askConfirm() }, requestState: await state.mint({ step: 1 }, ctx) });
    });
  }
  tool('multiple_inputs', async ({ inputResponses }, ctx) => {
    const missing = ['user_name', 'greeting', 'client_roots'].filter((key) => inputResponse(inputResponses, key).kind === 'missing');
    if (missing.length === 0) return text('all inputs received');
    const inputRequests = { user_name: askName(), greeting: askModel('Generate a greeting'), client_roots: inputRequired.listRoots() };
    return inputRequired({ inputRequests, requestState: await state.mint({ step: 'inputs' }, ctx) });
  });
  tool('multi_round', async ({ inputResponses, requestState }, ctx) => {
    const round = requestState()?.round ?? 0;
    if (round === 1 && acceptedContent(inputResponses, 'step1')) {
      const color = inputRequired.elicit({ message: 'Step 2: favourite colour?', requestedSchema: { type: 'object', properties: { color: { type: 'string' } }, required: ['color'] } });
      return inputRequired({ inputRequests: { step2: color }, requestState: await state.mint({ round: 2 }, ctx) });
    }
    if (round === 2 && acceptedContent(inputResponses, 'step2')) return text('both rounds done');
    return inputRequired({ inputRequests: { step1: askName('Step 1: your name?') }, requestState: await state.mint({ round: 1 }, ctx) });
  });
  /** Asks only for what the client said it can do. */
  tool('capabilities', ({ inputResponses, envelope }) => {
    if (inputResponses) return text('answered');
    const can = envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
    const inputRequests = {};
    if (can.sampling) inputRequests.ask = askModel();
    if (can.elicitation) inputRequests.user_name = askName();
    return Object.keys(inputRequests).length ? inputRequired({ inputRequests }) : text('nothing to ask');
  });
  server.registerTool('test_missing_capability', { description: 'samples, whether or not the client can', inputSchema: NO_ARGUMENTS }, (_, { mcpReq }) =>
    mcpReq.inputResponses ? text('sampled') : inputRequired({ inputRequests: { ask: askModel() } }));
  server.registerTool('test_streaming_elicitation', { description: 'a log line, then a question', inputSchema: NO_ARGUMENTS }, async (_, { mcpReq }) => {
    const user = acceptedContent(mcpReq.inputResponses, 'user_name');
    if (user) return text(`Hello, ${user.name}!`);
    await mcpReq.log('info', 'about to ask');
    return inputRequired({ inputRequests: { user_name: askName() } });
  });
  server.registerPrompt('test_input_required_result_prompt', { description: 'a prompt that asks first' }, ({ mcpReq }) => {
    const user = acceptedContent(mcpReq.inputResponses, 'user_context');
    if (!user) return inputRequired({ inputRequests: { user_context: inputRequired.elicit({ message: 'Context?', requestedSchema: { type: 'object', properties: { context: { type: 'string' } }, required: ['context'] } }) } });
    return { messages: [{ role: 'user', content: { type: 'text', text: `context: ${user.context}` } }] };
  });
}
