// The bench's jobs on npm socket.io, with a Socket.IO room per watched user.
// The token is the user's name; nothing is verified. Usage: node socketio.mjs PORT
import { createServer } from 'node:http';
import { Server } from 'socket.io';

const users = new Map(); // name → { status, version, lastSeen, connections }

function userNamed(name) {
  let user = users.get(name);
  if (!user) {
    user = { name, status: 'offline', version: 0, lastSeen: null, connections: 0 };
    users.set(name, user);
  }
  return user;
}

function presenceOf(user) {
  return {
    user_id: user.name,
    status: user.status,
    in_call: false,
    last_seen: user.lastSeen,
    version: user.version,
  };
}

const server = createServer();
const io = new Server(server, { transports: ['websocket'], perMessageDeflate: false, serveClient: false });

function setStatus(user, status) {
  user.status = status;
  user.version++;
  user.lastSeen = status === 'offline' ? new Date().toISOString() : null;
  io.to(`presence:${user.name}`).emit('presence_changed', {
    ...presenceOf(user),
    timestamp: new Date().toISOString(),
  });
}

io.on('connection', (socket) => {
  const user = userNamed(socket.handshake.auth.token);
  if (user.connections++ === 0) setStatus(user, 'online');
  socket.on('HEARTBEAT', (message, reply) => {
    reply({ type: 'heartbeat_ack', server_time: new Date().toISOString() });
  });
  socket.on('subscribe_presence', (message, reply) => {
    for (const name of message.user_ids) socket.join(`presence:${name}`);
    reply({ type: 'presence_snapshot', presences: message.user_ids.map(userNamed).map(presenceOf) });
  });
  socket.on('disconnect', () => {
    if (--user.connections === 0) setStatus(user, 'offline');
  });
});

server.listen({ port: Number(process.argv[2]), host: '127.0.0.1', backlog: 4096 });
