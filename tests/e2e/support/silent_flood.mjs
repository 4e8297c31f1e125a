/** A flood of connections that send nothing. Each one the server closes is soon replaced. */
import { connect } from 'node:net';

/** Reconnects are spread over this time, so that they come as a stream and not in waves. */
const RECONNECT_MS_MAX = 2000;

/** Keeps `count` silent connections to a port, open or about to reconnect. */
export function startSilentFlood({ port, count }) {
  const sockets = new Set();
  let stopped = false;
  let closedCount = 0;
  const open = () => {
    const socket = connect({ host: '127.0.0.1', port });
    sockets.add(socket);
    socket.on('error', () => {});
    socket.resume();
    socket.once('close', () => {
      sockets.delete(socket);
      closedCount += 1;
      setTimeout(() => stopped || open(), Math.random() * RECONNECT_MS_MAX).unref();
    });
  };
  for (let i = 0; i < count; i += 1) open();
  return {
    /** How many connections the server has closed so far. */
    closedCount: () => closedCount,
    stop: () => {
      stopped = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}
