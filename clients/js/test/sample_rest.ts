/** What sample.tsx leaves out: every other function and type that the package exports. */
import { Rollcall, RollcallApi, RollcallError } from 'rollcall';
import { Calls, TabMemory } from 'rollcall/call';
import type { CallOptions, CallState } from 'rollcall/call';
import { useChat } from 'rollcall/react';
import type {
  ActivityOptions, ApiOptions, Appearance, CallPush, ChatSnapshot, ClientErrorCode, ConnectionClosing, ConnectionEstablished,
  ContactRequests, Events, IceSettings, MessageAck, MessagePage, Options, PastCall, RequestOptions, RollcallErrorDetail,
  ServerErrorCode, ServerMessage, State, StateChange, Status, TimerSource, Visibility, WebSocketConstructor, WebSocketLike,
} from 'rollcall';

class Socket implements WebSocketLike {
  readonly readyState = 0;
  onopen = null;
  onmessage = null;
  onerror = null;
  onclose = null;
  constructor(readonly url: string, readonly protocols: string[]) {}
  send(text: string): void {
    console.log(text);
  }
  close(code?: number): void {
    console.log(code);
  }
}

const timers: TimerSource = { now: () => 0 };
const activity: ActivityOptions = { idleAfterMs: 1000, hiddenAfterMs: 1000 };
const constructor: WebSocketConstructor = Socket;
const options: Options = { token: 't', WebSocket: constructor, timers, activity, random: () => 0.5 };

export async function useClient(client: Rollcall): Promise<void> {
  const onState = ({ state, final }: StateChange): void => console.log(state satisfies State, final);
  client.once('state', onState);
  client.off('state', onState);
  client.once('connection_established', ({ conn_id }: ConnectionEstablished) => console.log(conn_id));
  client.on('connection_closing', ({ reason, reconnect_allowed }: ConnectionClosing) => console.log(reason, reconnect_allowed));
  client.on('call_incoming', ({ call_id, from }: CallPush) => console.log(call_id, from));
  client.on('receipt', ({ user_id, sequence }: Events['receipt']) => console.log(user_id, sequence));
  client.setActive(null);
  await client.refreshToken('fresh');
  const requested: RequestOptions = { idempotent: true, timeoutMs: 1000 };
  const reply: ServerMessage = await client.request('heartbeat', {}, requested);
  console.log(RollcallError.fromMessage(reply).code, client.userId, client.connectionId);
  const [{ status }] = await client.queryPresence(['bob']);
  console.log(status satisfies Status);
  await client.unsubscribePresence(['bob']);
  const snapshot: ChatSnapshot = await client.openChat('team', { afterSequence: 0 });
  const acknowledged: MessageAck = await client.sendMessage('team', 'hello', { clientMessageId: 'm' });
  console.log(snapshot.typing, client.typing('team', true), client.ack('team', acknowledged.sequence));
  const page: MessagePage = await client.fetchMessages('team', await client.sync('team'), 10);
  console.log(page.has_more);
  await client.closeChat('team');
  const { call_id } = await client.requestCall('bob');
  await client.acceptCall(call_id);
  await client.rejectCall(call_id);
  console.log(client.signal(call_id, { candidate: null }), await client.endCall(call_id));
  client.close();
}

export async function useApi(api: RollcallApi): Promise<void> {
  const limits: ApiOptions = { timeoutMs: 1000 };
  const requests: ContactRequests = await api.contactRequests(limits);
  await api.acceptContact(requests.incoming[0].id);
  await api.declineContact(requests.incoming[0].id);
  await api.removeContact('bob');
  await api.block('bob');
  console.log(await api.blocks(), await api.unblock('bob'), await api.presence('bob'), await api.presences(['bob']));
  const { chats } = await api.chats({ limit: 5 });
  for await (const chat of api.eachChat()) console.log(chat.unread, chats.length);
  await api.updateChat('team', { membersCanAdd: true });
  await api.addMember('team', 'bob');
  await api.removeMember('team', 'bob');
  await api.addAdmin('team', 'bob');
  await api.removeAdmin('team', 'bob');
  for await (const { body } of api.eachMessage('team', { beforeSequence: 9 })) console.log(body);
  console.log((await api.messages('team', { limit: 1 })).latest_sequence, (await api.chat('team')).kind);
  await api.sendMessage('team', 'hello');
  await api.markRead('team', 1);
  const past: PastCall[] = await api.calls();
  const ice: IceSettings = await api.ice();
  console.log(past.length, ice.ttl_seconds, await api.request('GET', '/v1/me', { query: { a: 1 } }));
  const { presence_visibility: visibility }: { presence_visibility: Visibility } = await api.me();
  const appearance: Appearance = await api.updateMe({ avatar_url: null });
  console.log(visibility, appearance.display_name);
}

const detail: RollcallErrorDetail = { retryAfterSeconds: 1 };
const codes: (ServerErrorCode | ClientErrorCode)[] = ['CHAT_HALTED', 'QUEUE_FULL'];
console.log(codes.map((code) => new RollcallError(code, 'text', detail).status));

export function useLists(client: Rollcall): void {
  const list = client.messageList('team');
  const stop = list.subscribe(() => console.log(list.isLoaded, list.hasEarlier, list.lastSequence));
  void list.retry('key').then(() => list.fetchEarlier({ limit: 10 }));
  list.drop('key');
  console.log(list.markRead(), stop(), list.close());
  list.dispose();
}

export function useCalls(client: Rollcall): void {
  const memory = new TabMemory();
  const calls = new Calls(client, { memory, endedShownMs: 1000 });
  const video: CallOptions = { video: false };
  const state: CallState | undefined = calls.current?.state;
  void calls.accept(video);
  calls.decline();
  calls.hangUp();
  calls.dismiss();
  memory.keepCall('bob', { callId: 'c', startedMs: null, muted: false });
  console.log(state, calls.isLive, memory.callOf('bob')?.muted);
  memory.forgetCall();
  calls.dispose();
}

export function useRest(): boolean {
  const { retry, drop, markRead } = useChat('team');
  void retry('key').then(() => drop('key'));
  return markRead();
}

console.log(new Rollcall(options).state);
