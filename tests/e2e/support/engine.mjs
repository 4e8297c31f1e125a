/** Engine.IO by hand, for what a proper client would never send, and for requests that go where they like. */
import { request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { WebSocket } from 'ws';
import { SOON_MS, within } from './client.mjs';

/** Between the packets of a payload. */
export const SEPARATOR = '\x1e';

export const enginePath = (query = {}) =>
  `/socket.io/?${new URLSearchParams({ EIO: '4', transport: 'polling', ...query })}`;

/** One request as a polling client makes it: status, headers and text of the answer. */
export async function engineRequest(server, { method = 'GET', query, body, headers, signal } = {}) {
  const url = new URL(enginePath(query), server.url);
  for (const [name, value] of [...url.searchParams])
    if (value === 'undefined') url.searchParams.delete(name);
  const response = await fetch(url, { method, body, headers, signal });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** The same on a connection of its own, or of `agent`: status and text. A certificate may be anybody's. */
export function engineSend(server, { method = 'GET', query, body, agent = false } = {}) {
  const url = new URL(enginePath(query), server.url);
  const open = url.protocol === 'https:' ? secureRequest : request;
  return new Promise((resolve, reject) => {
    const sent = open(url, { method, agent, rejectUnauthorized: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece) => {
        text += piece;
      });
      response.on('end', () => resolve({ status: response.statusCode, text }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** A polling session; `send` makes its requests, as `engineRequest` and `engineSend` do. */
export class EngineSession {
  constructor(server, open, send) {
    this.server = server;
    this.open = open;
    this.sid = open.sid;
    this.send = send;
  }

  static async start(server, { query = {}, send = engineRequest } = {}) {
    const { status, text } = await send(server, { query });
    if (status !== 200 || text[0] !== '0') throw new Error(`no session: ${status} ${text}`);
    return new EngineSession(server, JSON.parse(text.slice(1)), send);
  }

  get(options = {}) {
    return this.send(this.server, { ...options, query: { sid: this.sid, ...options.query } });
  }

  post(body, options = {}) {
    return this.get({ method: 'POST', body, ...options });
  }

  /** The packets of one poll. */
  async poll() {
    const { status, text } = await this.get();
    if (status !== 200) throw new Error(`poll: ${status} ${text}`);
    return text.split(SEPARATOR);
  }

  /** Joins the main namespace; what CONNECT was answered with. */
  async join(token) {
    const { status, text } = await this.post(`40${JSON.stringify({ token })}`);
    if (status !== 200) throw new Error(`join: ${status} ${text}`);
    const packets = [];
    while (!packets.some((packet) => packet.startsWith('40') || packet.startsWith('44')))
      packets.push(...(await this.poll()));
    const answer = packets.find((packet) => packet.startsWith('40') || packet.startsWith('44'));
    this.rest = packets.filter((packet) => packet !== answer);
    return { refused: answer[1] === '4', ...JSON.parse(answer.slice(2)) };
  }

  /** Polls until a packet fits; answers pings meanwhile. */
  async until(fits) {
    for (;;) {
      const packets = this.rest?.length ? this.rest.splice(0) : await this.poll();
      const at = packets.findIndex((packet) => fits(packet));
      if (packets.includes('2')) await this.post('3');
      if (at < 0) continue;
      this.rest = packets.slice(at + 1);
      return packets[at];
    }
  }
}

/** A WebSocket of Engine.IO, whose messages are packets. */
export class EngineSocket {
  packets = [];
  #wake = () => {};

  constructor(server, query = {}) {
    const url = new URL(enginePath({ transport: 'websocket', ...query }), server.url);
    this.socket = new WebSocket(url.href.replace(/^http/, 'ws'));
    this.closed = new Promise((resolve) => this.socket.on('close', resolve));
    this.opened = new Promise((resolve, reject) => {
      this.socket.on('open', resolve);
      this.socket.on('error', reject);
    });
    this.opened.catch(() => {});
    this.socket.on('message', (data, binary) => {
      this.packets.push(binary ? data : data.toString());
      this.#wake();
    });
  }

  async next() {
    while (this.packets.length === 0) {
      const woken = new Promise((resolve) => {
        this.#wake = resolve;
      });
      await within(SOON_MS, Promise.race([woken, this.closed]), 'packet');
      if (this.packets.length === 0) throw new Error('the connection ended');
    }
    return this.packets.shift();
  }

  /** The next packet but pings, which are answered. */
  async take() {
    for (;;) {
      const packet = await this.next();
      if (packet !== '2') return packet;
      this.socket.send('3');
    }
  }

  send(...packets) {
    for (const packet of packets) this.socket.send(packet);
  }

  terminate() {
    this.socket.terminate();
  }

  /** Joins the main namespace; what CONNECT was answered with. */
  async join(token) {
    const open = await this.next();
    if (open[0] !== '0') throw new Error(`no session: ${open}`);
    this.send(`40${JSON.stringify({ token })}`);
    const answer = await this.take();
    if (!answer.startsWith('40{')) throw new Error(`refused: ${answer}`);
    return JSON.parse(answer.slice(2));
  }

  /** The end, which must come soon. */
  ended() {
    return within(SOON_MS, this.closed, 'end of the WebSocket');
  }
}
