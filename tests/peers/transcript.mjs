// What a client driver saw, in a form that two runs can be compared by.
//
// A driver calls `step` for each thing it does and `note` for each thing that comes unasked.
// Steps keep their order; notes are sorted, because on HTTP they arrive on streams that race
// with the answers. Nothing here knows about the proxy: the same code runs direct and through it.

import { createHash } from 'node:crypto';
import { appendFileSync } from 'node:fs';

const WAIT_MS_MAX = 60_000;
const UUID = /[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}/g;

export class Transcript {
  steps = [];
  notes = [];
  /** Parameters of progress notices, in the order of the wire. */
  progress = [];

  /** Runs one step; what it returns or throws becomes its line. */
  async step(name, run) {
    let outcome;
    try {
      outcome = { result: await run() };
    } catch (error) {
      outcome = { error: rpcError(error) ?? { code: error.code, message: error.message, data: error.data } };
    }
    this.steps.push(normalise({ step: name, ...outcome }));
    return outcome.result;
  }

  /** Keeps a notification or a server's request. */
  note(kind, value) {
    this.notes.push(normalise({ kind, value }));
  }

  count(kind, test = () => true) {
    return this.notes.filter((note) => note.kind === kind && test(note.value)).length;
  }

  /** Waits for something that comes unasked. Its absence is a line too, so that it shows up as a difference. */
  async until(what, condition) {
    for (const started = Date.now(); !condition(); await new Promise((resume) => setTimeout(resume, 5))) {
      if (Date.now() - started > WAIT_MS_MAX) {
        this.steps.push({ step: `missing: ${what}` });
        return;
      }
    }
  }

  print() {
    const notes = this.notes.map((note) => JSON.stringify(note)).sort().map((text) => JSON.parse(text));
    process.stdout.write(JSON.stringify(sorted({ steps: this.steps, notes }), null, 1) + '\n');
  }
}

/**
 * Replaces what differs from run to run and nothing else: UUIDs (session, task and elicitation
 * ids), wall clock times, the port of a loopback address, opaque request states, the random level
 * of server-everything's simulated log, and "no session" as stdio servers spell it. Long strings
 * become their length and hash, which keeps a transcript readable and still compares every byte.
 */
export function normalise(value, key = '') {
  if (Array.isArray(value)) return value.map((item) => normalise(item));
  if (value !== null && typeof value === 'object') {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined);
    return sorted(Object.fromEntries(entries.map(([name, item]) => [name, normalise(item, name)])));
  }
  if (typeof value !== 'string') return value;
  if (key === 'requestState') return '<state>';
  if (key === 'blob') return normaliseBlob(value);
  const text = value
    .replace(UUID, '<uuid>')
    .replace(/session undefined/g, 'session <uuid>')
    .replace(/ (- SessionId|from session) <uuid>/g, '')
    .replace(/(Debug|Info|Notice|Warning|Error|Critical|Alert|Emergency)[- ]level[- ]message/g, '<level> message')
    .replace(/\d{1,2}:\d\d:\d\d [AP]M/g, '<time>')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, '<time>')
    .replace(/(127\.0\.0\.1|localhost):\d+/g, '<host>')
    .trimEnd();
  return text.length > 2000 ? `<${text.length} characters, sha256 ${sha256(text)}>` : text;
}

/** The 2.x client reports a JSON-RPC error under a 4xx status as an HTTP error with the body as text; a bridge has no status. */
function rpcError(error) {
  if (typeof error.data?.text !== 'string') return undefined;
  try {
    return JSON.parse(error.data.text).error;
  } catch {
    return undefined;
  }
}

/** A dynamic blob is base64 of a sentence with a time in it; any other blob stays as it is. */
function normaliseBlob(blob) {
  const text = Buffer.from(blob, 'base64').toString('latin1');
  return / created at /.test(text) ? `base64 of ${normalise(text)}` : `<blob, sha256 ${sha256(blob)}>`;
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

const sha256 = (text) => createHash('sha256').update(text).digest('hex').slice(0, 16);

/**
 * Listens on `transport`. Every message is written to the file named by PEER_WIRE, one JSON object
 * a line, so that a test can ask whether the tape has them all. The transport is patched, not
 * wrapped: the 2.x client treats any class but its own as a custom transport.
 */
export function tap(transport, transcript) {
  const path = process.env.PEER_WIRE;
  const keep = (dir, msg) => {
    if (path) appendFileSync(path, JSON.stringify({ dir, msg }) + '\n');
    if (msg.method === 'notifications/progress') transcript.progress.push(msg.params);
  };
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    for (const msg of [message].flat()) keep('c2s', msg);
    return send(message, options);
  };
  let handler;
  Object.defineProperty(transport, 'onmessage', {
    get: () => handler,
    set(next) {
      handler = next && ((msg, extra) => {
        keep('s2c', msg);
        return next(msg, extra);
      });
    },
  });
  return transport;
}
