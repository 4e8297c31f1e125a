/** A minimal RESP client: one connection, commands answered in order. */
import { connect } from 'node:net';
import { once } from 'node:events';

/** An error reply of Redis. */
export class RedisError extends Error {}

/** Parses the value at `from`; returns [value, offset of the next value], or undefined while it is incomplete. */
function parse(bytes, from) {
  const stop = bytes.indexOf('\r\n', from);
  if (stop < 0) return undefined;
  const line = bytes.toString('utf8', from + 1, stop);
  const next = stop + 2;
  switch (String.fromCharCode(bytes[from])) {
    case '+':
      return [line, next];
    case '-':
      return [new RedisError(line), next];
    case ':':
      return [Number(line), next];
    case '$':
      if (line === '-1') return [null, next];
      if (bytes.length < next + Number(line) + 2) return undefined;
      return [bytes.toString('utf8', next, next + Number(line)), next + Number(line) + 2];
    case '*':
      return line === '-1' ? [null, next] : parseArray(bytes, next, Number(line));
    default:
      throw new Error(`not RESP: ${bytes.toString('utf8', from, from + 80)}`);
  }
}

function parseArray(bytes, from, count) {
  const values = [];
  let next = from;
  for (let n = 0; n < count; n += 1) {
    const item = parse(bytes, next);
    if (item === undefined) return undefined;
    values.push(item[0]);
    next = item[1];
  }
  return [values, next];
}

function encode(args) {
  const pieces = args.map((arg) => Buffer.from(String(arg)));
  return Buffer.concat([
    Buffer.from(`*${pieces.length}\r\n`),
    ...pieces.flatMap((piece) => [
      Buffer.from(`$${piece.length}\r\n`),
      piece,
      Buffer.from('\r\n'),
    ]),
  ]);
}

/**
 * Connects to one server. `command()` rejects with a RedisError, or when the connection ends. Messages that
 * answer no command go to `onPush`.
 */
export async function connectRedis(port, onPush = () => {}) {
  const socket = connect(port, '127.0.0.1');
  const pending = [];
  let bytes = Buffer.alloc(0);
  socket.on('error', () => {});
  socket.on('close', () => {
    for (const { reject } of pending.splice(0)) reject(new Error('Redis closed the connection'));
  });
  socket.on('data', (data) => {
    bytes = Buffer.concat([bytes, data]);
    for (let item; (item = parse(bytes, 0)) !== undefined; ) {
      bytes = bytes.subarray(item[1]);
      const command = pending.shift();
      if (command === undefined) onPush(item[0]);
      else if (item[0] instanceof RedisError) command.reject(item[0]);
      else command.resolve(item[0]);
    }
  });
  await once(socket, 'connect');
  return {
    command(...args) {
      return new Promise((resolve, reject) => {
        if (socket.destroyed) reject(new Error('Redis closed the connection'));
        pending.push({ resolve, reject });
        socket.write(encode(args));
      });
    },
    close: () => socket.destroy(),
  };
}
