/** A TCP proxy in front of a server that can reset its connections, as a bad network does. */
import { connect, createServer } from 'node:net';
import { once } from 'node:events';

/** Resets a connection. Node cannot reset a socket that is ending: the process would never exit. */
export const reset = (socket) => (socket.writableEnded ? socket.destroy() : socket.resetAndDestroy());

export async function startProxy(port) {
  const pairs = new Set();
  let target = port;
  let cuts = 0;
  const listener = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    const pair = { near, far };
    const end = () => {
      near.destroy();
      far.destroy();
      pairs.delete(pair);
    };
    pairs.add(pair);
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      socket.on('error', end);
      socket.on('close', end);
    }
    near.pipe(far);
    far.pipe(near);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    url: `http://127.0.0.1:${listener.address().port}/`,

    /** Forwards new connections to another port, as a load balancer does. */
    forwardTo(otherPort) {
      target = otherPort;
    },

    /** How many connections have been reset so far. */
    get cuts() {
      return cuts;
    },

    /** Resets each connection with this probability, whatever it is transferring. */
    cut(probability = 1, random = Math.random) {
      for (const { near, far } of [...pairs]) {
        if (random() >= probability) continue;
        cuts += 1;
        reset(near);
        reset(far);
      }
    },

    close() {
      listener.close();
      this.cut();
    },
  };
}
