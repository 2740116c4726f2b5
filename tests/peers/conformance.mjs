// Runs the official conformance suite and prints `{scenario: {check: [status, ...]}}`.
//
//   conformance.mjs server REVISION URL           every server scenario of a requirement set
//   conformance.mjs server 0.1 URL                the older suite, all of it
//   conformance.mjs client REVISION COMMAND...    every client scenario but auth/*, each with COMMAND URL
//
// Only the statuses are kept: two runs are compared check by check, never by score or exit code.
// auth/* is left out because an OAuth client checks the origin it was told, which any proxy changes.

import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MODULES = join(dirname(fileURLToPath(import.meta.url)), 'node_modules');
const NEWEST = join(MODULES, '@modelcontextprotocol/conformance/dist/index.js');
const OLDER = join(MODULES, 'conformance-0.1/dist/index.js');

const [role, revision, ...target] = process.argv.slice(2);
const results = mkdtempSync(join(tmpdir(), 'conformance-'));
try {
  if (role === 'server') await servers(revision, target[0]);
  else await clients(revision, target.join(' '));
  process.stdout.write(JSON.stringify(collect(), null, 1) + '\n');
} finally {
  rmSync(results, { recursive: true, force: true });
}

async function servers(revision, url) {
  if (revision === '0.1') await suite(OLDER, ['server', '--url', url, '--suite', 'all']);
  else await suite(NEWEST, ['server', '--url', url, '--requirements', revision]);
}

async function clients(revision, command) {
  const [, rest] = (await suite(NEWEST, ['list', '--requirements', revision])).split('Client scenarios');
  const [required, unscored] = rest.split('Run and reported');
  const names = [...required.matchAll(/^ +- (\S+)/gm), ...unscored.matchAll(/^ +- (\S+) \[client\]/gm)].map(([, name]) => name);
  for (const scenario of names.filter((name) => !name.startsWith('auth/'))) {
    await suite(NEWEST, ['client', '--command', command, '--scenario', scenario, '--spec-version', revision]);
  }
}

/** One run of the suite, which exits 1 when a check fails: that is a result, not an error. */
function suite(program, args) {
  const output = args[0] === 'list' ? [] : ['--output-dir', results];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...args, ...output], { stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk));
    child.on('error', reject);
    child.on('exit', (code) => (code === 0 || code === 1 ? resolve(said) : reject(new Error(`${args.join(' ')}: exit ${code}\n${said}`))));
  });
}

/** The folders are named after scenario and time; a check id that repeats keeps all its statuses. */
function collect() {
  const scenarios = {};
  for (const folder of readdirSync(results, { recursive: true }).map(String).sort()) {
    const [, scenario] = /^(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z\/checks\.json$/.exec(folder) ?? [];
    if (!scenario) continue;
    const checks = (scenarios[scenario] ??= {});
    for (const { id, status } of JSON.parse(readFileSync(join(results, folder), 'utf8'))) {
      if (status !== 'INFO') (checks[id] ??= []).push(status); // INFO is the suite's log of the traffic
    }
  }
  for (const checks of Object.values(scenarios)) {
    for (const [id, statuses] of Object.entries(checks).sort()) {
      delete checks[id];
      checks[id] = statuses.sort();
    }
  }
  return scenarios;
}
