/** Types of `rollcall/react`: hooks for React 18 and later. */
import type { ReactElement, ReactNode } from 'react';
import type { Calls, CurrentCall } from './call.js';
import type {
  ApiOptions,
  Friend,
  ListedMessage,
  MessageAck,
  Presence,
  Rollcall,
  RollcallError,
  State,
} from './rollcall.js';

/** The application makes the client, connects and closes it. */
export function RollcallProvider(props: {
  client: Rollcall;
  /** For calls that survive a reload; otherwise useCall() makes one. */
  calls?: Calls;
  children?: ReactNode;
}): ReactElement;

export function useRollcall(): Rollcall;
export function useConnection(): State;

/** undefined while it is not known. */
export function usePresence(userId: string): Presence | undefined;

export function useFriends(): {
  readonly friends: readonly Friend[];
  readonly isLoaded: boolean;
  readonly error: RollcallError | null;
};

export function useChat(chatId: string): {
  readonly messages: readonly ListedMessage[];
  readonly isLoaded: boolean;
  readonly hasEarlier: boolean;
  /** Why the chat could not be opened. */
  readonly error: RollcallError | null;
  /** How far others have read since the chat is shown: user id → sequence. */
  readonly reads: Readonly<Record<string, number>>;
  send(body: string): Promise<MessageAck>;
  retry(key: string): Promise<MessageAck | null>;
  drop(key: string): void;
  fetchEarlier(options?: ApiOptions): Promise<boolean>;
  markRead(): boolean;
};

export function useTyping(chatId: string): {
  /** The others who type now. */
  readonly users: readonly string[];
  /** true with every input, false when the input is empty or loses the focus. */
  setTyping(typing: boolean): void;
};

export function useCall(): Pick<
  Calls,
  'place' | 'accept' | 'decline' | 'hangUp' | 'mute' | 'setCamera' | 'dismiss'
> & { readonly call: CurrentCall | null };
