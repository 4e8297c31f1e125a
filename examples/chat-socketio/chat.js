/** The chat with the stock Socket.IO client: events by name, answers as acknowledgements. */
import { io } from 'socket.io-client';
import {
  chatId,
  getToken,
  onInput,
  peer,
  prepareChat,
  server,
  showMessage,
  showPeer,
  showState,
  showTyping,
} from '../shared/page.js';

const socket = io(server, {
  autoConnect: false,
  auth: (give) => getToken().then((token) => give({ token })),
});

let latestSequence = 0;

function take(message) {
  latestSequence = Math.max(latestSequence, message.sequence);
  showMessage(message);
}

/** What was said before, and while the connection was away. */
async function catchUp() {
  for (;;) {
    const page = await socket.emitWithAck('sync_request', {
      chat_id: chatId,
      after_sequence: latestSequence,
    });
    page.messages?.forEach(take);
    if (!page.has_more) return;
  }
}

socket.on('connect', async () => {
  showState(socket.recovered ? 'recovered' : 'connected');
  const snapshot = await socket.emitWithAck('open_chat', { chat_id: chatId });
  const presence = snapshot.presences?.find(({ user_id: user }) => user === peer);
  showPeer(presence?.status ?? 'unknown');
  await catchUp();
});
socket.on('disconnect', () => showState('disconnected'));
socket.on('connect_error', ({ message }) => showState(message));

socket.on('USER_ONLINE', ({ userId }) => userId === peer && showPeer('online'));
socket.on('USER_OFFLINE', ({ userId }) => userId === peer && showPeer('offline'));
socket.on('typing', ({ userId, typing }) => userId === peer && showTyping(typing));
socket.on('message', (message) => message.chat_id === chatId && take(message));

onInput({
  async send(body) {
    const answer = await socket.emitWithAck('send_message', {
      chat_id: chatId,
      client_message_id: crypto.randomUUID(),
      body,
    });
    if (answer.type === 'error') showState(answer.message);
    else await catchUp();
  },
  typing(active) {
    socket.emit(active ? 'typing:start' : 'typing:stop', { roomId: chatId });
  },
});

await prepareChat();
socket.connect();
