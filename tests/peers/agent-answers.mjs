// A program that embeds a coding agent and shows the agent's questions to its user.
//
//   agent-answers.mjs claude|codex PROJECT PROGRAM ARGS...
//
// Speaks what editors speak with these agents: Claude Code's control requests (`stream-json`), and
// Codex's app server. Has the agent do one turn, in PROJECT. Its user gives the ANSWERS in their
// order, and `cancel` after them. Prints the questions as JSON.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const [kind, project, program, ...args] = process.argv.slice(2);
const answers = JSON.parse(process.env.ANSWERS);
const questions = [];
const PROMPT = 'Call the tools.';

function answerTo(message, schema) {
  questions.push({ message, schema });
  return answers[questions.length - 1] ?? { action: 'cancel' };
}

const hosts = {
  claude: {
    args: ['-p', '--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose', '--permission-mode', 'bypassPermissions'],
    begin(send) {
      send({ type: 'control_request', request_id: 'begin', request: { subtype: 'initialize' } });
      send({ type: 'user', message: { role: 'user', content: PROMPT } });
    },
    /** Returns whether the turn has ended. */
    take(line, send) {
      if (line.type === 'control_request' && line.request.subtype === 'elicitation') {
        const response = answerTo(line.request.message, line.request.requested_schema);
        send({ type: 'control_response', response: { subtype: 'success', request_id: line.request_id, response } });
      }
      return line.type === 'result';
    },
  },
  codex: {
    args: ['app-server'],
    begin(send) {
      send({ id: 'begin', method: 'initialize', params: { clientInfo: { name: 'embedder', version: '1' } } });
    },
    take(line, send) {
      // The ids of its requests may be those of ours.
      if (line.method === 'mcpServer/elicitation/request') {
        send({ id: line.id, result: answerTo(line.params.message, line.params.requestedSchema) });
      } else if (!line.method && line.id === 'begin') {
        send({ method: 'initialized' });
        send({ id: 'thread', method: 'thread/start', params: { cwd: project } });
      } else if (!line.method && line.id === 'thread') {
        send({ id: 'turn', method: 'turn/start', params: { threadId: line.result.thread.id, input: [{ type: 'text', text: PROMPT }] } });
      }
      return line.method === 'turn/completed';
    },
  },
};

const host = hosts[kind];
const agent = spawn(program, [...args, ...host.args], { cwd: project, stdio: ['pipe', 'pipe', 'inherit'] });
const send = (message) => agent.stdin.write(`${JSON.stringify(message)}\n`);
host.begin(send);
for await (const line of createInterface({ input: agent.stdout })) {
  if (host.take(JSON.parse(line), send)) break;
}
// Both end when their input ends.
agent.stdin.end();
agent.stdout.resume();
await new Promise((done) => agent.once('exit', done));
process.stdout.write(`${JSON.stringify(questions)}\n`);
