/** Engine.IO without its client: for packets a proper client never sends, and for requests on any connection. */
import { request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { WebSocket } from 'ws';
import { SOON_MS, within } from './client.mjs';

/** Separates the packets of a payload. */
export const SEPARATOR = '\x1e';

export const enginePath = (query = {}) =>
  `/socket.io/?${new URLSearchParams({ EIO: '4', transport: 'polling', ...query })}`;

/** Sends one polling request; returns status, headers and text of the answer. A parameter `undefined` is left out. */
export async function engineRequest(server, { method = 'GET', query, body, headers, signal } = {}) {
  const url = new URL(enginePath(query), server.url);
  for (const [name, value] of [...url.searchParams])
    if (value === 'undefined') url.searchParams.delete(name);
  const response = await fetch(url, { method, body, headers, signal });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Sends one polling request on a new connection, or one of `agent`; returns status and text. Accepts any certificate. */
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

/** A polling session; `send` (`engineRequest` or `engineSend`) sends its requests. */
export class EngineSession {
  constructor(server, open, send) {
    this.server = server;
    this.open = open;
    this.sid = open.sid;
    this.send = send;
  }

  static async start(server, { query = {}, send = engineRequest } = {}) {
    const { status, text } = await send(server, { query });
    if (status !== 200 || text[0] !== '0') throw new Error(`the handshake failed: ${status} ${text}`);
    return new EngineSession(server, JSON.parse(text.slice(1)), send);
  }

  get(options = {}) {
    return this.send(this.server, { ...options, query: { sid: this.sid, ...options.query } });
  }

  post(body, options = {}) {
    return this.get({ method: 'POST', body, ...options });
  }

  /** Polls once; returns the packets. */
  async poll() {
    const { status, text } = await this.get();
    if (status !== 200) throw new Error(`poll: ${status} ${text}`);
    return text.split(SEPARATOR);
  }

  /** Joins the main namespace; returns the answer to CONNECT. */
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

  /** Polls until a packet matches, and returns it; answers pings meanwhile. */
  async until(matches) {
    for (;;) {
      const packets = this.rest?.length ? this.rest.splice(0) : await this.poll();
      const at = packets.findIndex((packet) => matches(packet));
      if (packets.includes('2')) await this.post('3');
      if (at < 0) continue;
      this.rest = packets.slice(at + 1);
      return packets[at];
    }
  }
}

/** An Engine.IO WebSocket; each message is a packet. */
export class EngineSocket {
  packets = [];
  #onPacket = () => {};

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
      this.#onPacket();
    });
  }

  async next() {
    while (this.packets.length === 0) {
      const received = new Promise((resolve) => {
        this.#onPacket = resolve;
      });
      await within(SOON_MS, Promise.race([received, this.closed]), 'packet');
      if (this.packets.length === 0) throw new Error('the connection ended before a packet came');
    }
    return this.packets.shift();
  }

  /** Takes the next packet that is not a ping; answers pings. */
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

  /** Joins the main namespace; returns the answer to CONNECT. */
  async join(token) {
    const open = await this.next();
    if (open[0] !== '0') throw new Error(`the handshake failed: ${open}`);
    this.send(`40${JSON.stringify({ token })}`);
    const answer = await this.take();
    if (!answer.startsWith('40{')) throw new Error(`CONNECT was refused: ${answer}`);
    return JSON.parse(answer.slice(2));
  }

  /** Waits until the connection is closed; returns the code. */
  ended() {
    return within(SOON_MS, this.closed, 'end of the WebSocket');
  }
}
