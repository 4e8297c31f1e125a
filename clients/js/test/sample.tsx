/** A program that uses the whole client; the compiler checks it against the types. */
import { devToken, MessageList, Rollcall, RollcallApi, RollcallError } from 'rollcall';
import { Calls, TabMemory } from 'rollcall/call';
import type { CurrentCall } from 'rollcall/call';
import { RollcallProvider, useCall, useChat, useConnection, useFriends, usePresence, useRollcall, useTyping } from 'rollcall/react';
import type { Chat, Friend, ListedMessage, Message, Presence, Settings } from 'rollcall';

const client = new Rollcall({ url: 'wss://example.org', getToken: () => devToken('alice') });

const stop: () => void = client.on('presence', ({ user_id, status, last_seen }: Presence) => {
  console.log(user_id.length, status === 'away', last_seen?.length);
});
client.on('message', (message: Message) => console.log(message.sender_id ?? 'system', message.body));
client.on('message_deleted', ({ chat_id, sequence }) => console.log(chat_id, sequence + 1));
client.on('delivery', ({ event, data }) => console.log(event, data));
client.on('delivery:shipped', (data) => console.log(data.order));
client.on('sync_required', ({ reason }) => console.log(reason));
client.on('state', ({ state, delayMs }) => console.log(state === 'READY', delayMs));

async function main(signal: AbortSignal): Promise<void> {
  await client.connect();
  const [presence]: Presence[] = await client.subscribePresence(['bob']);
  console.log(presence.version, client.presence('bob')?.in_call);
  const acknowledged: { placed: boolean } = await client.sendEvent('order', { id: 7 }, { signal });
  console.log(acknowledged.placed);

  const settings: Settings = await client.api.updateMe({ display_name: 'Alice', read_receipts: false });
  const friends: Friend[] = (await client.api.friends({ status: 'online', limit: 20, signal })).friends;
  for await (const { user_id } of client.api.eachFriend()) console.log(user_id, friends.length, settings.user_id);
  const { id, status } = await client.api.requestContact('bob');
  if (status === 'pending' && id !== null) await client.api.withdrawContact(id);
  const chat: Chat = await client.api.directChat('bob', { timeoutMs: 5000 });
  await client.api.createGroup({ members: ['bob'], membersCanAdd: false });
  const [call] = await client.api.calls({ limit: 1 });
  console.log(call.answered_at, chat.profiles?.bob?.display_name);
  const { iceServers, ttl_seconds } = await client.api.ice();
  console.log(new RTCPeerConnection({ iceServers }), ttl_seconds);

  const list: MessageList = client.messageList(chat.chat_id, { pageSize: 20 });
  await list.open();
  const last: ListedMessage | undefined = list.messages.at(-1);
  console.log(last?.state === 'failed' ? last.error?.code : last?.sequence);
  await list.send('hello').catch((error: unknown) => {
    if (error instanceof RollcallError && error.retryable) console.log(error.code, error.retryAfterSeconds);
  });
  stop();
}

function draw(call: CurrentCall | null, video: HTMLVideoElement): void {
  video.srcObject = call?.remoteStream ?? null;
  if (call?.state === 'ended') console.log(call.reason === 'busy', call.error?.code, call.missed);
}

const memory = new TabMemory();
const calls = new Calls(client, { memory });
calls.subscribe(() => draw(calls.current, document.createElement('video')));
void calls.place('bob', { video: true }).catch((error: RollcallError) => error.code);
void calls.accept().then(() => calls.setCamera(true));
calls.mute(!calls.current?.muted);
console.log(new Rollcall({ token: 'token', deviceId: memory.deviceId }).deviceId);

const api = new RollcallApi({ url: 'https://example.org', token: 'token' });
void api.me().then((settings) => settings.avatar_url);
void main(new AbortController().signal);

function Friends() {
  const { friends, isLoaded, error } = useFriends();
  const bob: Presence | undefined = usePresence('bob');
  if (!isLoaded) return <p>{error?.code ?? useConnection()}</p>;
  return <ul data-bob={bob?.status}>{friends.map(({ user_id, status }) => <li key={user_id}>{status}</li>)}</ul>;
}

function Conversation({ chatId }: { chatId: string }) {
  const { messages, hasEarlier, fetchEarlier, send, reads } = useChat(chatId);
  const { users, setTyping } = useTyping(chatId);
  const { call, place, hangUp } = useCall();
  console.log(useRollcall().state, reads.bob, users.length, call?.media);
  return (
    <form onSubmit={() => void send('hello')} onInput={() => setTyping(true)}>
      {hasEarlier && <button onClick={() => void fetchEarlier()}>Earlier</button>}
      {messages.map(({ key, body, deleted }) => <p key={key}>{deleted ? 'deleted' : body}</p>)}
      <button onClick={() => (call ? hangUp() : void place('bob'))}>Call</button>
    </form>
  );
}

export const App = () => (
  <RollcallProvider client={client} calls={calls}>
    <Friends />
    <Conversation chatId="team" />
  </RollcallProvider>
);
