/** Lets the scenarios use the JavaScript client; README.md describes the lines. */
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { Rollcall } from '../js/rollcall.js';

const { WebSocket } = createRequire(new URL('../../tests/e2e/', import.meta.url))('ws');
const EVENTS = ['presence', 'message', 'typing', 'receipt', 'connection_closing', 'contact_request', 'contact_accepted',
  'contact_removed', 'chat_added', 'chat_removed', 'message_deleted', 'sync_required', 'delivery', 'call_incoming', 'call_accepted', 'call_rejected', 'call_ended', 'call_signal'];
const clients = new Map();
const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

function open(name, { url, token_file: tokenFile, device_id: deviceId }) {
  const client = new Rollcall({ url, deviceId, WebSocket, getToken: () => readFile(tokenFile, 'utf8') });
  client.on('state', ({ state, final, reason }) => print({ client: name, event: 'state', data: { state, final, reason } }));
  for (const event of EVENTS) client.on(event, (data) => print({ client: name, event, data }));
  clients.set(name, client);
  client.connect().catch(() => {}); // the `state` event tells
}

const operations = {
  close: (client) => client.close(),
  subscribe_presence: (client, { user_ids: ids }) => client.subscribePresence(ids),
  open_chat: (client, { chat_id: chat, after_sequence: afterSequence }) => client.openChat(chat, { afterSequence }),
  close_chat: (client, { chat_id: chat }) => client.closeChat(chat),
  send_message: (client, { chat_id: chat, body, client_message_id: clientMessageId }) =>
    client.sendMessage(chat, body, { clientMessageId }),
  typing: (client, { chat_id: chat, typing }) => client.typing(chat, typing),
  ack: (client, { chat_id: chat, sequence }) => client.ack(chat, sequence),
  request_call: (client, { to }) => client.requestCall(to),
  accept_call: (client, { call_id: id }) => client.acceptCall(id),
  reject_call: (client, { call_id: id }) => client.rejectCall(id),
  end_call: (client, { call_id: id }) => client.endCall(id),
  signal: (client, { call_id: id, data }) => client.signal(id, data),
  send_event: async (client, { name, data }) => ({ data: await client.sendEvent(name, data) }),
  request_contact: ({ api }, { user_id: user }) => api.requestContact(user),
  contact_requests: ({ api }) => api.contactRequests(),
  accept_contact: ({ api }, { request_id: id }) => api.acceptContact(id),
  remove_contact: ({ api }, { user_id: user }) => api.removeContact(user),
  friends: ({ api }) => api.friends(),
  block: ({ api }, { user_id: user }) => api.block(user),
  create_chat: ({ api }, { chat_id: chatId, members }) => api.createGroup({ chatId, members }),
  direct_chat: ({ api }, { user_id: user }) => api.directChat(user),
  chat: ({ api }, { chat_id: chat }) => api.chat(chat),
  history: ({ api }, { chat_id: chat, before_sequence: beforeSequence, limit }) =>
    api.messages(chat, { beforeSequence, limit }),
  mark_read: ({ api }, { chat_id: chat, sequence }) => api.markRead(chat, sequence),
  remove_member: ({ api }, { chat_id: chat, user_id: user }) => api.removeMember(chat, user),
};

async function perform({ id, client: name, do: op, args }) {
  try {
    const result = op === 'open' ? open(name, args) : await operations[op](clients.get(name), args);
    print({ id, result: result ?? null });
  } catch (error) {
    print({ id, error: { code: error.code ?? 'BUG', message: String(error.stack ?? error) } });
  }
}

print({ hello: { name: 'JavaScript' } });
createInterface({ input: process.stdin }).on('line', (line) => perform(JSON.parse(line))).on('close', () => process.exit(0));
