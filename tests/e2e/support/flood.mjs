/** Connections that say nothing: for each that is cut there is soon another. */
import { connect } from 'node:net';

/** Spread, so that they come in a stream and not in waves. */
const AGAIN_MS_MAX = 2000;

/** `width` connections that are open or will soon be again. */
export function flood({ port, width }) {
  const sockets = new Set();
  let stopped = false;
  let cut = 0;
  const open = () => {
    const socket = connect({ host: '127.0.0.1', port });
    sockets.add(socket);
    socket.on('error', () => {});
    socket.resume();
    socket.once('close', () => {
      sockets.delete(socket);
      cut += 1;
      setTimeout(() => stopped || open(), Math.random() * AGAIN_MS_MAX).unref();
    });
  };
  for (let i = 0; i < width; i += 1) open();
  return {
    /** How many the server has cut so far. */
    cut: () => cut,
    stop: () => {
      stopped = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}
