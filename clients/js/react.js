/**
 * React hooks for Rollcall.
 *
 *   <RollcallProvider client={client}> … </RollcallProvider>
 *
 *   usePresence('bob')?.status
 *   const { friends } = useFriends();
 *   const { messages, send } = useChat(chatId);
 *   const { users, setTyping } = useTyping(chatId);
 *   const { call, place, accept, hangUp } = useCall();
 *
 * The application makes the client, connects and closes it. Components that show the same thing share one store
 * (react_stores.js), so a hook may be used in many places; in strict mode and with concurrent rendering all of
 * them show the same state.
 */
import {
  createContext,
  createElement,
  useContext,
  useMemo,
  useSyncExternalStore,
} from 'react';
import { Stores } from './react_stores.js';

const Context = createContext(null);

/** One for each client, so that providers of the same client share. */
const storesOfClients = new WeakMap();

function storesOf(client) {
  let stores = storesOfClients.get(client);
  if (stores === undefined) {
    stores = new Stores(client);
    storesOfClients.set(client, stores);
  }
  return stores;
}

/** `calls`: a Calls of the application, for example with a TabMemory; otherwise useCall() makes one. */
export function RollcallProvider({ client, calls, children }) {
  const value = useMemo(() => ({ client, calls, stores: storesOf(client) }), [client, calls]);
  return createElement(Context.Provider, { value }, children);
}

function useRollcallContext() {
  const context = useContext(Context);
  if (context === null) throw new Error('there is no RollcallProvider above this component');
  return context;
}

const useStore = (store) => useSyncExternalStore(store.subscribe, store.getSnapshot, store.getSnapshot);

/** The client of the provider. */
export const useRollcall = () => useRollcallContext().client;

/** The state of the connection, such as `READY`. */
export const useConnection = () => useStore(useRollcallContext().stores.connection());

/** The presence of a user, or undefined while it is not known. */
export const usePresence = (userId) => useStore(useRollcallContext().stores.presence(userId));

/** `{friends, isLoaded, error}`: the contacts with their presence, sorted by id. */
export const useFriends = () => useStore(useRollcallContext().stores.friends());

/** `{messages, isLoaded, hasEarlier, error, reads, send, retry, drop, fetchEarlier, markRead}`. */
export function useChat(chatId) {
  const { actions, typing, ...shown } = useStore(useRollcallContext().stores.chat(chatId));
  const { setTyping, ...others } = actions;
  return { ...shown, ...others };
}

/** `{users, setTyping}`: the others who type in the chat; setTyping(true) with every input, then false. */
export function useTyping(chatId) {
  const { typing, actions } = useStore(useRollcallContext().stores.chat(chatId));
  return { users: typing, setTyping: actions.setTyping };
}

/** `{call, place, accept, decline, hangUp, mute, setCamera, dismiss}`; `call` is null or as in call.js. */
export function useCall() {
  const { stores, calls: given } = useRollcallContext();
  const calls = useMemo(() => stores.calls(given), [stores, given]);
  const subscribe = useMemo(() => calls.subscribe.bind(calls), [calls]);
  const call = useSyncExternalStore(subscribe, () => calls.current, () => calls.current);
  const actions = useMemo(() => {
    const names = ['place', 'accept', 'decline', 'hangUp', 'mute', 'setCamera', 'dismiss'];
    return Object.fromEntries(names.map((name) => [name, calls[name].bind(calls)]));
  }, [calls]);
  return { call, ...actions };
}
