/**
 * The network between one client and the server: a TCP proxy on loopback that injects faults.
 *
 * It reads the WebSocket frames that the server sends, so that it can repeat, drop and swap whole messages; what the
 * client sends passes unread.
 */
import { connect, createServer } from 'node:net';
import { once } from 'node:events';

const TEXT = 1;
const HEAD_END = '\r\n\r\n';

const reset = (socket) => (socket.writableEnded ? socket.destroy() : socket.resetAndDestroy());

/** Splits what a server sends into the HTTP head (and all of a plain answer) and the frames after an upgrade. */
class FrameReader {
  #buffer = Buffer.alloc(0);
  #upgraded;

  /** Returns pieces as {raw, text?}; `text` is that of a whole text frame. */
  read(data) {
    this.#buffer = Buffer.concat([this.#buffer, data]);
    const pieces = [];
    for (let piece = this.#next(); piece !== null; piece = this.#next()) pieces.push(piece);
    return pieces;
  }

  #next() {
    if (this.#upgraded === undefined) return this.#head();
    if (!this.#upgraded) return this.#take(this.#buffer.length);
    return this.#frame();
  }

  #head() {
    const end = this.#buffer.indexOf(HEAD_END);
    if (end < 0) return null;
    this.#upgraded = this.#buffer.subarray(0, end).includes(' 101 ');
    return this.#take(end + HEAD_END.length);
  }

  #frame() {
    const buffer = this.#buffer;
    if (buffer.length < 2) return null;
    const short = buffer[1] & 0x7f;
    const headBytes = short === 127 ? 10 : short === 126 ? 4 : 2;
    if (buffer.length < headBytes) return null;
    const bytes =
      short === 127 ? Number(buffer.readBigUInt64BE(2)) : short === 126 ? buffer.readUInt16BE(2) : short;
    const isText = (buffer[0] & 0x0f) === TEXT;
    const piece = this.#take(headBytes + bytes);
    return piece && isText ? { ...piece, text: piece.raw.subarray(headBytes).toString() } : piece;
  }

  #take(bytes) {
    if (bytes === 0 || this.#buffer.length < bytes) return null;
    const raw = this.#buffer.subarray(0, bytes);
    this.#buffer = this.#buffer.subarray(bytes);
    return { raw };
  }
}

function textFrame(message) {
  const payload = Buffer.from(JSON.stringify(message));
  const head = payload.length < 126 ? [0x80 | TEXT, payload.length] : [0x80 | TEXT, 126, payload.length >> 8, payload.length & 0xff];
  return Buffer.concat([Buffer.from(head), payload]);
}

const isMessage = ({ text }) => text !== undefined && JSON.parse(text).type === 'message';

/** Starts a proxy to the port that `target()` returns at each new connection. */
export async function startNetwork(target) {
  const pairs = new Set();
  const state = { isDown: false, isStalled: false, isDeaf: false, delayMs: 0, twice: false, drop: 0, swap: false };
  let upgrades = 0;

  const pass = (to, data, held) => {
    if (state.isStalled) held.push(data);
    else if (state.delayMs > 0) setTimeout(() => to.writable && to.write(data), state.delayMs);
    else if (to.writable) to.write(data);
  };

  /** Applies the faults of messages to one piece; returns what to send in its place. */
  const distort = (pair, piece) => {
    if (state.isDeaf) return [];
    if (!isMessage(piece)) return [piece.raw];
    if (state.drop > 0) {
      state.drop -= 1;
      return [];
    }
    if (state.twice) return [piece.raw, piece.raw];
    if (!state.swap) return [piece.raw];
    if (pair.early === undefined) {
      pair.early = piece.raw;
      return [];
    }
    const { early } = pair;
    pair.early = undefined;
    return [piece.raw, early];
  };

  const listener = createServer((near) => {
    near.on('error', () => {});
    if (state.isDown) {
      reset(near);
      return;
    }
    const far = connect(target(), '127.0.0.1');
    const pair = { near, far, heldNear: [], heldFar: [] };
    const frames = new FrameReader();
    const end = () => {
      near.destroy();
      far.destroy();
      pairs.delete(pair);
    };
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      socket.on('error', end);
    }
    // The end travels behind the data, as on a slow network.
    near.on('close', () => setTimeout(end, state.delayMs));
    far.on('close', () => setTimeout(end, state.delayMs));
    near.on('data', (data) => pass(far, data, pair.heldFar));
    far.on('data', (data) => {
      for (const piece of frames.read(data)) {
        if (piece.raw.includes('HTTP/1.1 101 ')) upgrades += 1;
        for (const raw of distort(pair, piece)) pass(near, raw, pair.heldNear);
      }
    });
    pairs.add(pair);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');

  const network = {
    url: `http://127.0.0.1:${listener.address().port}/`,

    /** How many WebSockets the server has accepted through it. */
    get upgrades() {
      return upgrades;
    },

    /** Resets the connections; new ones work. */
    cut() {
      for (const { near, far } of [...pairs]) {
        reset(near);
        reset(far);
      }
    },
    /** Resets the connections, and all that follow until up(). */
    down() {
      state.isDown = true;
      network.cut();
    },
    up() {
      Object.assign(state, { isDown: false, isStalled: false, isDeaf: false, delayMs: 0, twice: false, drop: 0, swap: false });
      for (const { near, far, heldNear, heldFar } of pairs) {
        for (const data of heldNear.splice(0)) near.write(data);
        for (const data of heldFar.splice(0)) far.write(data);
      }
    },
    /** No bytes pass, and the connections stay open, as with a lost route. */
    stall() {
      state.isStalled = true;
    },
    /** What the server sends is lost, what the client sends arrives. */
    deafen() {
      state.isDeaf = true;
    },
    slow(delayMs) {
      state.delayMs = delayMs;
    },
    /** Every message comes twice. */
    duplicate() {
      state.twice = true;
    },
    /** The next `count` messages are lost, the connection stays. */
    drop(count) {
      state.drop = count;
    },
    /** Each second message overtakes the one before it. */
    swap() {
      state.swap = true;
    },
    /** Sends the client a message as if it came from the server. */
    inject(message) {
      for (const { near } of pairs) near.write(textFrame(message));
    },
    close() {
      listener.close();
      network.down();
    },
  };
  return network;
}
