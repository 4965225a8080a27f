#!/usr/bin/env node
// Several sessions through one `agentcell serve`: prints what happens, and cancels the last one as soon as it runs.
//
//     several.mjs [MESSAGE...]
//
// When this program ends, even by kill -9, serve sees the end of its stdin and ends all sessions.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { messages } from './lines.mjs';

const given = process.argv.slice(2);
const questions = given.length ? given : ['What is here?', 'What is missing?', 'What could go wrong?'];

const serve = spawn('agentcell', ['serve', '--jobs', '2'], { stdio: ['pipe', 'pipe', 'inherit'] });
const ended = once(serve, 'close');
serve.stdin.on('error', () => {}); // a serve that is gone gives no results, which is seen below
const send = (message) => serve.stdin.write(JSON.stringify(message) + '\n');

const open = new Set();
for (const question of questions) {
  const id = `q${open.size + 1}`;
  const request = { session_name: id, agent_type: 'planner', project_dir: '.', starting_message: question };
  send({ type: 'run', id, request: { ...request, events: 'summary' } });
  open.add(id);
}
const last = [...open].at(-1);

for await (const message of messages(serve.stdout)) {
  const { type, id } = message;
  if (type === 'result') console.log(`${id} ${message.error?.category ?? message.status}: ${message.response}`);
  else if (type === 'refused') console.log(`${id} refused: ${message.error.message}`);
  else if (type === 'text' || type === 'warning') console.log(`${id} ${type}: ${message.text ?? message.message}`);
  else if (type !== 'hello') console.log(`${id} ${type}`);

  if (type === 'session_started' && id === last) send({ type: 'cancel', id });
  if (type === 'result' || type === 'refused') open.delete(id); // each run has one of them
  if (open.size === 0) send({ type: 'shutdown' });
}
const [code, signal] = await ended;

if (open.size) throw new Error(`agentcell serve ended with ${[...open]} open: ${signal ?? code}`);
process.exitCode = code ?? 1;
