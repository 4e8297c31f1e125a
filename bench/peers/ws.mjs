// The bench's jobs on npm ws: the least code that a team would write for presence.
// The token is the user's name; nothing is verified. Usage: node ws.mjs PORT
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

const users = new Map(); // name → { status, version, lastSeen, connections, watchers }

function userNamed(name) {
  let user = users.get(name);
  if (!user) {
    user = { name, status: 'offline', version: 0, lastSeen: null, connections: 0, watchers: new Set() };
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

function setStatus(user, status) {
  user.status = status;
  user.version++;
  user.lastSeen = status === 'offline' ? new Date().toISOString() : null;
  if (user.watchers.size === 0) return;
  const event = { type: 'presence_changed', ...presenceOf(user), timestamp: new Date().toISOString() };
  const text = JSON.stringify(event);
  for (const watcher of user.watchers) watcher.send(text);
}

const commands = {
  heartbeat() {
    return { type: 'heartbeat_ack', server_time: new Date().toISOString() };
  },
  subscribe_presence(socket, message) {
    const watched = message.user_ids.map(userNamed);
    for (const user of watched) user.watchers.add(socket);
    socket.watched = watched;
    return { type: 'presence_snapshot', presences: watched.map(presenceOf) };
  },
};

function serve(socket, request) {
  const name = (request.headers.authorization ?? '').replace('Bearer ', '');
  const user = userNamed(name);
  if (user.connections++ === 0) setStatus(user, 'online');
  socket.on('message', (data) => {
    const message = JSON.parse(data);
    socket.send(JSON.stringify(commands[message.type](socket, message)));
  });
  socket.on('close', () => {
    for (const watched of socket.watched ?? []) watched.watchers.delete(socket);
    if (--user.connections === 0) setStatus(user, 'offline');
  });
  socket.send(
    JSON.stringify({
      type: 'connection_established',
      user_id: name,
      server_time: new Date().toISOString(),
    }),
  );
}

const server = createServer();
new WebSocketServer({ server, perMessageDeflate: false, clientTracking: false }).on('connection', serve);
server.listen({ port: Number(process.argv[2]), host: '127.0.0.1', backlog: 4096 });
