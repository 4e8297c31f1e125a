/**
 * Raw bytes on a TCP connection, and hand-made WebSocket frames: for input a proper client never
 * sends.
 */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { SOON_MS, within } from './client.mjs';

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 };

const sockets = new Set();

/** A TCP or TLS connection and the bytes received on it. */
export class RawSocket {
  received = Buffer.alloc(0);
  ended = false;
  #onChange = () => {};

  constructor(socket) {
    this.socket = socket;
    this.connected = new Promise((resolve, reject) => {
      socket.once(socket.encrypted ? 'secureConnect' : 'connect', resolve);
      socket.once('error', reject);
    });
    this.connected.catch(() => {});
    this.closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => {});
    socket.on('data', (data) => {
      this.received = Buffer.concat([this.received, data]);
      this.#onChange();
    });
    for (const event of ['end', 'close'])
      socket.on(event, () => {
        this.ended = true;
        this.#onChange();
      });
    sockets.add(this);
  }

  send(...pieces) {
    for (const piece of pieces)
      this.socket.write(typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece);
  }

  /** Repeats `take` whenever bytes arrive, until its result is not undefined. */
  async until(take, what, timeoutMs = SOON_MS) {
    for (;;) {
      const taken = take();
      if (taken !== undefined) return taken;
      if (this.ended) throw new Error(`the connection ended, waiting for: ${what}`);
      const changed = new Promise((resolve) => {
        this.#onChange = resolve;
      });
      await within(
        timeoutMs,
        changed,
        `${what}; received: ${this.received.toString('latin1').slice(-500)}`,
      );
    }
  }

  #take(bytes) {
    const taken = this.received.subarray(0, bytes);
    this.received = this.received.subarray(bytes);
    return taken;
  }

  /** Takes the next HTTP answer, with the body that its Content-Length announces. */
  response({ head: isHead = false, timeoutMs = SOON_MS } = {}) {
    return this.until(() => this.#takeResponse(isHead), 'answer', timeoutMs);
  }

  #takeResponse(isHead) {
    const end = this.received.indexOf('\r\n\r\n');
    if (end < 0) return undefined;
    const [statusLine, ...lines] = this.received.toString('latin1', 0, end).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const bodyBytes = isHead ? 0 : Number(headers['content-length'] ?? 0);
    if (this.received.length < end + 4 + bodyBytes) return undefined;
    this.#take(end + 4);
    return {
      status: Number(statusLine.split(' ')[1]),
      headers,
      body: this.#take(bodyBytes).toString('utf8'),
    };
  }

  /** Takes the next frame from the server, which must not be masked. */
  frame(timeoutMs) {
    return this.until(() => this.#takeFrame(), 'frame', timeoutMs);
  }

  #takeFrame() {
    const bytes = this.received;
    if (bytes.length < 2) return undefined;
    if (bytes[1] & 0x80) throw new Error('the server masked a frame');
    let length = bytes[1] & 0x7f;
    let start = 2;
    if (length === 126) {
      start = 4;
      if (bytes.length < start) return undefined;
      length = bytes.readUInt16BE(2);
    } else if (length === 127) {
      start = 10;
      if (bytes.length < start) return undefined;
      length = Number(bytes.readBigUInt64BE(2));
    }
    if (bytes.length < start + length) return undefined;
    const [first] = this.#take(start);
    return {
      fin: (first & 0x80) !== 0,
      rsv: (first >> 4) & 7,
      opcode: first & 0x0f,
      payload: Buffer.from(this.#take(length)),
    };
  }

  /** Takes the next frame, which must be a close frame; returns its code. */
  async closeCode(timeoutMs) {
    const { opcode, payload } = await this.frame(timeoutMs);
    if (opcode !== OPCODE.close) throw new Error(`expected a close frame, got opcode ${opcode}`);
    return payload.length === 0 ? undefined : payload.readUInt16BE(0);
  }

  /** Waits for the end of the stream. */
  end(timeoutMs = SOON_MS) {
    return this.until(() => (this.ended ? true : undefined), 'end of the stream', timeoutMs).catch(
      (error) => {
        if (!this.ended) throw error;
      },
    );
  }

  destroy() {
    this.socket.destroy();
    sockets.delete(this);
  }
}

export function rawConnect({ port }, options = {}) {
  return new RawSocket(connect({ host: '127.0.0.1', port, noDelay: true, ...options }));
}

export function destroyAll() {
  for (const socket of sockets) socket.destroy();
}

/** An HTTP request; `headers` are lines. Host is added unless one of them is a Host line. */
export function request(method, path, headers = [], body = '') {
  const host = headers.some((line) => /^host:/i.test(line)) ? [] : ['Host: localhost'];
  return `${[`${method} ${path} HTTP/1.1`, ...host, ...headers].join('\r\n')}\r\n\r\n${body}`;
}

export const HANDSHAKE = [
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

/** Opens a WebSocket for hand-made frames. */
export async function rawWebSocket(server, path = '/v1/echo', headers = []) {
  const socket = rawConnect(server);
  socket.send(request('GET', path, [...HANDSHAKE, ...headers]));
  const answer = await socket.response();
  if (answer.status !== 101) throw new Error(`the upgrade was refused: ${answer.status} ${answer.body}`);
  socket.handshake = answer;
  return socket;
}

function lengthField(length, form) {
  if (form === 7 || (form === undefined && length < 126)) return Buffer.from([length]);
  const field = Buffer.alloc(form === 64 || (form === undefined && length > 65535) ? 9 : 3);
  if (field.length === 9) {
    field[0] = 127;
    field.writeBigUInt64BE(BigInt(length), 1);
  } else {
    field[0] = 126;
    field.writeUInt16BE(length, 1);
  }
  return field;
}

/**
 * A valid client frame by default. `form` forces the encoding of the length (7, 16 or 64 bits),
 * `length` announces a length other than the payload's.
 */
export function frame(opcode, payload = '', options = {}) {
  const { fin = true, rsv = 0, mask = randomBytes(4), form, length } = options;
  const data = Buffer.from(payload);
  const header = Buffer.concat([
    Buffer.from([(fin ? 0x80 : 0) | (rsv << 4) | opcode]),
    lengthField(length ?? data.length, form),
  ]);
  if (mask === null) return Buffer.concat([header, data]);
  header[1] |= 0x80;
  return Buffer.concat([header, mask, data.map((byte, at) => byte ^ mask[at % 4])]);
}

export function closeFrame(code, reason = '') {
  const payload = Buffer.concat([Buffer.alloc(2), Buffer.from(reason)]);
  payload.writeUInt16BE(code);
  return frame(OPCODE.close, payload);
}
