/**
 * A TCP proxy between a gateway and its Redis that injects faults: cut (connections are reset), stalled (as
 * with a lost route: connections stay open, but no bytes pass), or slow.
 */
import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { reset } from './proxy.mjs';

export async function startFaultProxy(port) {
  const pairs = new Set();
  let mode = 'open';
  let delayMs = 0;

  /** Forwards one direction, delayed when slow. Holds all bytes while stalled; the returned function releases them. */
  const carry = (from, to, held) => {
    from.on('data', (data) => {
      if (mode === 'stalled') held.push(data);
      else if (delayMs > 0) setTimeout(() => to.writable && to.write(data), delayMs);
      else to.write(data);
    });
    return () => {
      for (const data of held.splice(0)) to.write(data);
    };
  };
  const listener = createServer((near) => {
    if (mode === 'cut') {
      reset(near);
      return;
    }
    const far = connect(port, '127.0.0.1');
    const pair = { near, far };
    const end = () => {
      near.destroy();
      far.destroy();
      pairs.delete(pair);
    };
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      socket.on('error', end);
      socket.on('close', end);
    }
    const releases = [carry(near, far, []), carry(far, near, [])];
    pair.release = () => releases.forEach((release) => release());
    pairs.add(pair);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const proxy = {
    port: listener.address().port,

    /** Resets all connections, existing and new. */
    cut() {
      mode = 'cut';
      for (const { near, far } of [...pairs]) {
        reset(near);
        reset(far);
      }
    },
    stall() {
      mode = 'stalled';
    },
    slow(ms) {
      delayMs = ms;
    },
    /** Ends every fault and forwards what was held. */
    restore() {
      mode = 'open';
      delayMs = 0;
      for (const { release } of pairs) release();
    },
    close() {
      listener.close();
      proxy.cut();
    },
  };
  return proxy;
}
