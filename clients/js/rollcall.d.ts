/** Types of Rollcall's JavaScript client. Fields of the protocol keep the names they have there. */

// --- Messages from the server -------------------------------------------------------------------

export type Status = 'online' | 'away' | 'offline' | 'unknown';

export interface Presence {
  user_id: string;
  status: Status;
  in_call: boolean;
  /** RFC 3339; null while online, and where unknown or hidden. */
  last_seen: string | null;
  /** Grows with every change of that user; 0 where the status is `unknown`. */
  version: number;
  reason?: 'privacy' | 'not_contacts';
  /** The server could not read its state store: this is the last known presence. */
  stale?: boolean;
  timestamp?: string;
}

export interface Message {
  chat_id: string;
  message_id: string;
  /** Dense within the chat, starting at 1. */
  sequence: number;
  /** null: a message of the system. */
  sender_id: string | null;
  /** Absent if the message was deleted. */
  body?: string;
  deleted?: boolean;
  /** RFC 3339. For a message sent by this client: this device's clock. */
  sent_at: string;
  /** Only on messages sent by this client. */
  client_message_id?: string;
}

export interface MessageAck {
  chat_id: string;
  client_message_id: string;
  message_id: string;
  sequence: number;
  /** The server had stored it already. */
  duplicate: boolean;
  /** The id was used before with another body; the server keeps that message. */
  body_differs?: true;
}

export interface ChatSnapshot {
  chat_id: string;
  presences: Presence[];
  /** Ids of the users typing now. */
  typing: string[];
  latest_sequence: number;
}

export interface MessagePage {
  chat_id: string;
  messages: Message[];
  has_more: boolean;
  latest_sequence: number;
}

/** How users show themselves; contacts and members of the same chats see it. */
export interface Appearance {
  display_name: string | null;
  avatar_url: string | null;
}

export type Visibility = 'everyone' | 'contacts_only' | 'nobody';

export interface Settings extends Appearance {
  user_id: string;
  presence_visibility: Visibility;
  last_seen_visibility: Visibility;
  group_adds: 'everyone' | 'contacts_only';
  read_receipts: boolean;
}

export type Friend = Presence & Appearance;

export interface ContactRequests {
  incoming: { id: string; from: string; created_at: string }[];
  outgoing: { id: string; to: string; created_at: string }[];
  has_more: boolean;
}

export interface Chat {
  chat_id: string;
  kind: 'group' | 'direct';
  members: string[];
  admins: string[];
  members_can_add: boolean;
  latest_sequence: number;
  /** Messages of others after the user's read mark. */
  unread: number;
  /** RFC 3339: the last message, or the creation. */
  last_activity: string;
  /** Members who have a name or a picture; in the list of chats only for direct chats. */
  profiles?: Record<string, Appearance>;
  /** How far members have read, as far as they show it. */
  read?: Record<string, number>;
}

export interface PastCall {
  call_id: string;
  peer: string;
  direction: 'incoming' | 'outgoing';
  reason: 'hangup' | 'rejected' | 'cancelled' | 'timeout' | 'busy' | 'disconnected';
  started_at: string;
  /** null if nobody answered. */
  answered_at: string | null;
  ended_at: string;
  duration_seconds: number;
}

/** For `new RTCPeerConnection({ iceServers })`. */
export interface IceSettings {
  iceServers: { urls: string[]; username?: string; credential?: string }[];
  /** How long the credentials are valid; 0: they do not expire. */
  ttl_seconds: number;
}

export interface ConnectionEstablished {
  conn_id: string;
  server_id: string;
  user_id: string;
  heartbeat_interval_seconds: number;
  expiry_window_seconds: number;
  server_time: string;
  /** As the application's server named the user, if it did. */
  display_name?: string;
}

export interface ConnectionClosing {
  reason: string;
  reconnect_allowed: boolean;
  reconnect_after_ms?: number;
  sync_from_sequence?: Record<string, number>;
}

export interface CallPush {
  call_id: string;
  /** The caller and the callee; the caller makes the offer. */
  from: string;
  to: string;
  reason?:
    | 'hangup'
    | 'rejected'
    | 'cancelled'
    | 'timeout'
    | 'busy'
    | 'answered_elsewhere'
    | 'disconnected';
}

/** Any reply or push, with the fields of its type. */
export interface ServerMessage {
  type: string;
  id?: string;
  [field: string]: unknown;
}

// --- Errors -------------------------------------------------------------------------------------

export type ServerErrorCode =
  | 'INVALID_MESSAGE'
  | 'MESSAGE_TOO_LARGE'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'NOT_FOUND'
  | 'RATE_LIMITED'
  | 'SERVER_BUSY'
  | 'SERVICE_UNAVAILABLE'
  | 'SLOW_CONSUMER'
  | 'SUBSCRIPTION_LIMIT'
  | 'CHAT_HALTED'
  | 'CALL_BUSY'
  | 'CALL_UNAVAILABLE';

export type ClientErrorCode = 'TIMEOUT' | 'DISCONNECTED' | 'QUEUE_FULL' | 'CLOSED';

export interface RollcallErrorDetail {
  status?: number;
  retryAfterSeconds?: number;
  clientMessageId?: string;
  chatId?: string;
  cause?: unknown;
}

export class RollcallError extends Error {
  constructor(
    code: ServerErrorCode | ClientErrorCode,
    message: string,
    detail?: RollcallErrorDetail,
  );
  static fromMessage(message: ServerMessage): RollcallError;
  readonly name: 'RollcallError';
  readonly code: ServerErrorCode | ClientErrorCode;
  /** The HTTP status, for requests of `client.api`. */
  readonly status?: number;
  readonly retryAfterSeconds?: number;
  readonly clientMessageId?: string;
  readonly chatId?: string;
  /** The same request may succeed a little later. */
  readonly retryable: boolean;
}

// --- Events -------------------------------------------------------------------------------------

export type State =
  'CONNECTED' | 'CLOSING' | 'DISCONNECTED' | 'BACKOFF' | 'RECONNECTING' | 'SYNCING' | 'READY';

export interface StateChange {
  state: State;
  previous: State;
  /** Why, where known: a reason of `connection_closing`, or the client's own. */
  reason?: string;
  /** The WebSocket close code, on DISCONNECTED. */
  code?: number;
  /** On BACKOFF: how long, and the number of the next attempt. */
  delayMs?: number;
  attempt?: number;
  /** On DISCONNECTED: no further attempt will be made; `error` says why. */
  final?: true;
  error?: Error;
}

export interface Events {
  state: StateChange;
  presence: Presence;
  message: Message;
  chat: ChatSnapshot;
  /** The user is no longer a member; the client does not open the chat again. */
  chat_closed: { chat_id: string; reason: string };
  /** The user is a member of a chat from now on. */
  chat_added: { chat_id: string; kind: 'group' | 'direct' };
  chat_removed: { chat_id: string };
  /** The members, their roles or the rights of a chat have changed: read it again. */
  chat_changed: { chat_id: string };
  /** Another user has read an open chat up to this sequence. */
  receipt: { chat_id: string; user_id: string; sequence: number };
  typing: { chat_id: string; user_id: string; typing: boolean };
  /** Errors that no promise reports. Not fatal: the `state` event reports the end. */
  error: Error;
  connection_established: ConnectionEstablished;
  connection_closing: ConnectionClosing;
  call_incoming: CallPush;
  call_ringing: CallPush;
  call_accepted: CallPush;
  call_rejected: CallPush;
  call_ended: CallPush;
  call_signal: { call_id: string; from: string; data: unknown };
  /** From the application's server; with an event name also as `delivery:NAME`, with the data alone. */
  delivery: { event?: string; data: any };
  /** The message stays in its place, without a body. */
  message_deleted: { chat_id: string; sequence: number };
  /** Pushes may have been missed. Open chats are synced already; read the lists again. */
  sync_required: { reason: string };
  contact_request: { request_id: string; from: string };
  contact_accepted: { user_id: string };
  contact_removed: { user_id: string };
}

// --- Construction -------------------------------------------------------------------------------

/** The part of a WebSocket that the client uses; browsers, Node and the ws package have it. */
export interface WebSocketLike {
  readonly readyState: number;
  onopen: ((event: any) => void) | null;
  onmessage: ((event: any) => void) | null;
  onerror: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
  send(text: string): void;
  close(code?: number): void;
}

export type WebSocketConstructor = new (url: string, protocols: string[]) => WebSocketLike;

export interface TimerSource {
  setTimeout?: (callback: () => void, delayMs: number) => unknown;
  clearTimeout?: (handle: any) => void;
  /** Milliseconds since 1970. */
  now?: () => number;
}

export interface ActivityOptions {
  /** Where input and visibility are read; default: the document, if there is one. */
  page?: Document;
  /** No input for this long is idle (300,000). */
  idleAfterMs?: number;
  /** A page hidden for this long is idle (60,000). */
  hiddenAfterMs?: number;
}

interface CommonOptions {
  /** http, https, ws or wss; the path defaults to `/v1/ws`, in a page the rest to its origin. */
  url?: string | URL;
  /** Stays the same after reconnects; random if not given. */
  deviceId?: string;
  /** Required where there is no global one, as in Node 20. */
  WebSocket?: WebSocketConstructor;
  /** For the requests of `client.api`; default: the global one. */
  fetch?: typeof fetch;
  /** A number in [0, 1), for jitter. */
  random?: () => number;
  timers?: TimerSource;
  activity?: ActivityOptions;
}

/** If `getToken` throws an error with code UNAUTHENTICATED, the client stops; others are retried. */
export type Options = CommonOptions &
  (
    | { token: string; getToken?: undefined }
    | { token?: string; getToken: () => string | Promise<string> }
  );

export interface RequestOptions {
  /** Ends the wait; a request that was sent may still take effect. */
  signal?: AbortSignal;
  /** Default: 10,000. */
  timeoutMs?: number;
  /** May be sent again after a lost connection. */
  idempotent?: boolean;
}

// --- The HTTP API -------------------------------------------------------------------------------

export interface ApiOptions {
  /** Cancels the request; it rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Default: 30,000. */
  timeoutMs?: number;
}

/** One method for each request of the HTTP API; none needs a connection. */
export class RollcallApi {
  constructor(options: {
    url?: string | URL;
    token?: string;
    getToken?: () => string | Promise<string>;
    fetch?: typeof fetch;
    timers?: TimerSource;
  });

  /** Any request; `path` begins with a slash. */
  request(
    method: string,
    path: string,
    options?: ApiOptions & { query?: Record<string, unknown>; body?: unknown },
  ): Promise<any>;

  me(options?: ApiOptions): Promise<Settings>;
  updateMe(
    changes: Partial<Omit<Settings, 'user_id'>>,
    options?: ApiOptions,
  ): Promise<Settings>;

  presence(userId: string, options?: ApiOptions): Promise<Presence>;
  presences(userIds: string[], options?: ApiOptions): Promise<Presence[]>;

  friends(
    options?: ApiOptions & { status?: Status; inCall?: boolean; after?: string; limit?: number },
  ): Promise<{ friends: Friend[]; has_more: boolean }>;
  eachFriend(
    options?: ApiOptions & { status?: Status; inCall?: boolean; limit?: number },
  ): AsyncGenerator<Friend, void>;
  contactRequests(
    options?: ApiOptions & { after?: string; limit?: number },
  ): Promise<ContactRequests>;
  requestContact(
    userId: string,
    options?: ApiOptions,
  ): Promise<{ id: string | null; to: string; status: 'pending' | 'accepted' }>;
  acceptContact(
    requestId: string,
    options?: ApiOptions,
  ): Promise<{ id: string; from: string; status: 'accepted' }>;
  declineContact(
    requestId: string,
    options?: ApiOptions,
  ): Promise<{ id: string; from: string; status: 'declined' }>;
  withdrawContact(requestId: string, options?: ApiOptions): Promise<null>;
  removeContact(userId: string, options?: ApiOptions): Promise<null>;
  blocks(options?: ApiOptions): Promise<string[]>;
  block(userId: string, options?: ApiOptions): Promise<null>;
  unblock(userId: string, options?: ApiOptions): Promise<null>;

  chats(
    options?: ApiOptions & { cursor?: string; limit?: number },
  ): Promise<{ chats: Chat[]; has_more: boolean; next_cursor: string | null }>;
  eachChat(options?: ApiOptions & { limit?: number }): AsyncGenerator<Chat, void>;
  chat(chatId: string, options?: ApiOptions): Promise<Chat>;
  directChat(userId: string, options?: ApiOptions): Promise<Chat>;
  createGroup(
    group: { chatId?: string; members: string[]; membersCanAdd?: boolean },
    options?: ApiOptions,
  ): Promise<Chat>;
  updateChat(
    chatId: string,
    changes: { membersCanAdd: boolean },
    options?: ApiOptions,
  ): Promise<Chat>;
  addMember(chatId: string, userId: string, options?: ApiOptions): Promise<null>;
  removeMember(chatId: string, userId: string, options?: ApiOptions): Promise<null>;
  addAdmin(chatId: string, userId: string, options?: ApiOptions): Promise<null>;
  removeAdmin(chatId: string, userId: string, options?: ApiOptions): Promise<null>;

  messages(
    chatId: string,
    options?: ApiOptions & { afterSequence?: number; beforeSequence?: number; limit?: number },
  ): Promise<Omit<MessagePage, 'chat_id'>>;
  /** Backwards, the latest first. */
  eachMessage(
    chatId: string,
    options?: ApiOptions & { beforeSequence?: number; limit?: number },
  ): AsyncGenerator<Message, void>;
  sendMessage(
    chatId: string,
    body: string,
    options?: ApiOptions & { clientMessageId?: string },
  ): Promise<MessageAck>;
  markRead(
    chatId: string,
    sequence: number,
    options?: ApiOptions,
  ): Promise<{ chat_id: string; sequence: number }>;

  calls(options?: ApiOptions & { limit?: number }): Promise<PastCall[]>;
  ice(options?: ApiOptions): Promise<IceSettings>;
}

/** Promises a token for any name; only servers in dev mode issue them. */
export function devToken(
  userId: string,
  options?: { url?: string | URL; fetch?: typeof fetch },
): Promise<string>;

// --- Message lists ------------------------------------------------------------------------------

export interface ListedMessage extends Omit<Message, 'message_id' | 'sequence' | 'sent_at'> {
  /** The same before and after a message of this client is stored. */
  readonly key: string;
  readonly state: 'sending' | 'sent' | 'failed';
  /** Why it failed. */
  readonly error?: RollcallError;
  /** Absent, and null, until the message is stored. */
  message_id?: string;
  sequence?: number;
  sent_at: string | null;
}

/** The messages of a chat: history, pushes and unsent messages without gaps or duplicates. */
export class MessageList {
  private constructor();

  readonly chatId: string;
  /** The same array until something changes. */
  readonly messages: readonly ListedMessage[];
  readonly isLoaded: boolean;
  readonly hasEarlier: boolean;
  /** The sequence of the last stored message, or 0. */
  readonly lastSequence: number;

  subscribe(listener: () => void): () => void;
  open(): Promise<void>;
  close(): Promise<void>;
  dispose(): void;
  fetchEarlier(options?: ApiOptions & { limit?: number }): Promise<boolean>;
  send(body: string, options?: { clientMessageId?: string }): Promise<MessageAck>;
  retry(key: string): Promise<MessageAck | null>;
  drop(key: string): void;
  markRead(): boolean;
}

// --- The client ---------------------------------------------------------------------------------

export class Rollcall {
  constructor(options: Options);

  readonly api: RollcallApi;
  readonly deviceId: string;
  readonly state: State;
  readonly userId: string | null;
  readonly connectionId: string | null;

  connect(): Promise<void>;
  close(): void;

  on<Type extends keyof Events>(type: Type, listener: (payload: Events[Type]) => void): () => void;
  on(type: string, listener: (payload: any) => void): () => void;
  once<Type extends keyof Events>(
    type: Type,
    listener: (payload: Events[Type]) => void,
  ): () => void;
  once(type: string, listener: (payload: any) => void): () => void;
  off(type: string, listener: (payload: any) => void): void;

  setActive(active: boolean | null): void;
  refreshToken(token?: string): Promise<void>;
  request(
    type: string,
    fields?: Record<string, unknown>,
    options?: RequestOptions,
  ): Promise<ServerMessage>;

  sendEvent(name: string, data?: unknown, options?: RequestOptions): Promise<any>;

  presence(userId: string): Presence | undefined;
  subscribePresence(userIds: string[]): Promise<Presence[]>;
  unsubscribePresence(userIds: string[]): Promise<void>;
  queryPresence(userIds: string[]): Promise<Presence[]>;

  openChat(chatId: string, options?: { afterSequence?: number }): Promise<ChatSnapshot>;
  closeChat(chatId: string): Promise<void>;
  messageList(chatId: string, options?: { pageSize?: number }): MessageList;
  typing(chatId: string, typing?: boolean): boolean;
  sendMessage(
    chatId: string,
    body: string,
    options?: { clientMessageId?: string },
  ): Promise<MessageAck>;
  sync(chatId: string): Promise<number>;
  fetchMessages(chatId: string, afterSequence: number, limit?: number): Promise<MessagePage>;
  ack(chatId: string, sequence: number): boolean;

  requestCall(to: string, options?: { callId?: string }): Promise<{ call_id: string }>;
  acceptCall(callId: string): Promise<ServerMessage>;
  rejectCall(callId: string): Promise<ServerMessage>;
  endCall(callId: string): Promise<ServerMessage>;
  signal(callId: string, data: unknown): boolean;
}
