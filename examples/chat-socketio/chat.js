/** The chat with the stock Socket.IO client: events by name, answers as acknowledgements. */
import { io } from 'socket.io-client';
import * as page from '../shared/page.js';

const { peer, server } = page;
const chatId = await page.openChat();

const socket = io(server, {
  autoConnect: false,
  auth: (give) => page.getToken().then((token) => give({ token })),
});

let latestSequence = 0;

function addMessage(message) {
  latestSequence = Math.max(latestSequence, message.sequence);
  page.showMessage(message);
}

/** Fetches the messages from before the connection and from interruptions. */
async function catchUp() {
  for (;;) {
    const missed = await socket.emitWithAck('sync_request', {
      chat_id: chatId,
      after_sequence: latestSequence,
    });
    missed.messages?.forEach(addMessage);
    if (!missed.has_more) return;
  }
}

socket.on('connect', async () => {
  page.showState(socket.recovered ? 'recovered' : 'connected');
  const snapshot = await socket.emitWithAck('open_chat', { chat_id: chatId });
  const presence = snapshot.presences?.find(({ user_id: user }) => user === peer);
  page.showPeer(presence?.status ?? 'unknown');
  await catchUp();
});
socket.on('disconnect', () => page.showState('disconnected'));
socket.on('connect_error', ({ message }) => page.showState(message));

socket.on('USER_ONLINE', ({ userId }) => userId === peer && page.showPeer('online'));
socket.on('USER_OFFLINE', ({ userId }) => userId === peer && page.showPeer('offline'));
socket.on('typing', ({ userId, typing }) => userId === peer && page.showTyping(typing));
socket.on('message', (message) => message.chat_id === chatId && addMessage(message));

page.onInput({
  async send(body) {
    const answer = await socket.emitWithAck('send_message', {
      chat_id: chatId,
      client_message_id: crypto.randomUUID(),
      body,
    });
    if (answer.type === 'error') page.showState(answer.message);
    else await catchUp();
  },
  typing(active) {
    socket.emit(active ? 'typing:start' : 'typing:stop', { roomId: chatId });
  },
});

socket.connect();
