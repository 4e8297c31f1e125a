/**
 * A client that wants to harm others, as the worker thread that support/abuse.mjs starts: in a thread of its own, so
 * that its load on the event loop does not slow the victim's clock down.
 *
 * `workerData` names the attack and its parameters. The worker posts 'started', then a summary of what it sent and what
 * was answered. It stops after `ms`, or when the server has closed all its connections.
 */
import http from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';
import { WebSocket } from 'ws';

const { kind, url, token, ms, connections = 1 } = workerData;
const sleep = (duration) => new Promise((resolve) => setTimeout(resolve, duration));
const UNSENT_BYTES_MAX = 1000000;
const CLOSE_MAX_MS = 10000;

const summary = { sent: 0, answers: {}, closings: [], retryAfter: [] };
const count = (name) => {
  summary.answers[name] = (summary.answers[name] ?? 0) + 1;
};

function noteMessage(data) {
  const { type, code, reason, retry_after_seconds: retryAfter } = JSON.parse(data);
  if (type === 'connection_closing') summary.closings.push({ reason });
  count(code ?? type);
  if (code === 'RATE_LIMITED') summary.retryAfter.push(retryAfter);
}

/** Sends `batch` frames every `everyMs` on each of many connections: `frames` are texts, null is a ping. */
async function floodWebSockets({ frames, batch = 20, everyMs = 20 }) {
  const address = `${url.replace(/^http/, 'ws')}v1/ws`;
  const options = { perMessageDeflate: false, headers: { Authorization: `Bearer ${token}` } };
  const sockets = Array.from({ length: connections }, () => new WebSocket(address, options));
  const startedMs = Date.now();
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.on('open', resolve))));
  const ends = sockets.map((socket) => {
    socket.on('message', noteMessage);
    socket.on('error', () => {});
    return new Promise((resolve) => {
      socket.on('close', (code) => resolve(summary.closings.push({ code, ms: Date.now() - startedMs })));
    });
  });
  parentPort.postMessage('started');
  let next = 0;
  while (Date.now() - startedMs < ms && sockets.some(({ readyState }) => readyState === WebSocket.OPEN)) {
    for (const socket of sockets)
      for (let i = 0; i < batch && socket.readyState === WebSocket.OPEN; i += 1) {
        if (socket.bufferedAmount > UNSENT_BYTES_MAX) break;
        const frame = frames[next++ % frames.length];
        if (frame === null) socket.ping();
        else socket.send(frame.replaceAll('{n}', String(next)));
        summary.sent += 1;
      }
    await sleep(everyMs);
  }
  const closing = sockets.every(({ readyState }) => readyState !== WebSocket.OPEN);
  if (closing) await Promise.race([Promise.all(ends), sleep(CLOSE_MAX_MS)]);
  for (const socket of sockets) socket.terminate();
}

function request(agent, method, path, body) {
  return new Promise((resolve) => {
    const headers = { Authorization: `Bearer ${token}` };
    const sent = http.request(new URL(path, url), { agent, method, headers }, async (response) => {
      let text = '';
      for await (const piece of response) text += piece;
      resolve({ status: response.statusCode, headers: response.headers, text });
    });
    sent.on('error', () => resolve({ status: 0, headers: {}, text: '' }));
    sent.end(body);
  });
}

/** Repeats requests on many connections at once: `requests` are [method, path, body]. */
async function floodRest({ requests }) {
  const startedMs = Date.now();
  let next = 0;
  parentPort.postMessage('started');
  const loops = Array.from({ length: connections }, async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    while (Date.now() - startedMs < ms) {
      const [method, path, body] = requests[next++ % requests.length];
      summary.sent += 1;
      const { status, headers, text } = await request(agent, method, path, body);
      count(status);
      if (status === 429)
        summary.retryAfter.push(JSON.parse(text).error.retry_after_seconds, Number(headers['retry-after']));
    }
    agent.destroy();
  });
  await Promise.all(loops);
}

/** Posts Engine.IO payloads of many events as fast as they are answered. */
async function floodPolling({ event, batch = 50 }) {
  const agent = new http.Agent({ keepAlive: true });
  const base = '/socket.io/?EIO=4&transport=polling';
  const opened = await request(agent, 'GET', base);
  const path = `${base}&sid=${JSON.parse(opened.text.slice(1)).sid}`;
  await request(agent, 'POST', path, `40${JSON.stringify({ token })}`);
  const startedMs = Date.now();
  let isOpen = true; // for POSTs; the GETs go on until the last event has come
  let isPolled = true;
  const note = (packet) => {
    if (packet === '1') isOpen = isPolled = false;
    if (packet.startsWith('42')) {
      const [name, data] = JSON.parse(packet.slice(packet.indexOf('[')));
      if (name === 'connection_closing') summary.closings.push({ reason: data.reason, ms: Date.now() - startedMs });
      count(data.code ?? name);
    }
  };
  const polls = (async () => {
    while (isPolled && Date.now() - startedMs < ms) {
      const { status, text } = await request(agent, 'GET', path);
      isPolled &&= status === 200;
      for (const packet of text.split('\x1e')) note(packet);
    }
  })();
  parentPort.postMessage('started');
  while (isOpen && Date.now() - startedMs < ms) {
    summary.sent += batch;
    const { status } = await request(agent, 'POST', path, Array(batch).fill(event).join('\x1e'));
    isOpen &&= status === 200;
    count(`POST ${status}`);
  }
  await Promise.race([polls, sleep(2000)]);
  agent.destroy();
}

const ATTACKS = { websocket: floodWebSockets, rest: floodRest, polling: floodPolling };
const startedMs = Date.now();
await ATTACKS[kind](workerData);
summary.ms = Date.now() - startedMs;
parentPort.postMessage(summary);
process.exit(0);
