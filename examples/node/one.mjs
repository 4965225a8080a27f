#!/usr/bin/env node
// One session through agentcell-worker; prints events on stderr, and the answer.
//
//     one.mjs ["MESSAGE" [PROJECT_DIR]]
//
// This program holds the worker's stdin open, and `lifeline: true` makes that count: when the program ends, even by
// kill -9, the worker sees the end of its stdin and ends the session.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { messages } from './lines.mjs';

const [message = 'Look around and say hello.', project = '.'] = process.argv.slice(2);

const worker = spawn('agentcell-worker', { stdio: ['pipe', 'pipe', 'inherit'] });
const ended = once(worker, 'close');
worker.stdin.on('error', () => {}); // a worker that is gone gives no result, which is seen below
worker.stdin.write(
  JSON.stringify({
    session_name: 'one',
    agent_type: 'coder',
    project_dir: project,
    starting_message: message,
    events: 'summary',
    lifeline: true,
  }) + '\n', // write, not end: see above
);

let result;
for await (const line of messages(worker.stdout)) {
  if (line.type === 'result') result = line;
  else console.error(line.type);
}
const [code, signal] = await ended;

if (!result) throw new Error(`agentcell-worker ended without a result: ${signal ?? code}`);
if (result.error) console.error(`failed (${result.error.category}): ${result.response}`);
else console.log(result.response);
process.exitCode = code ?? 1;
