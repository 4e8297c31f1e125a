/**
 * Delivers every message once, and in order within its chat.
 *
 * Sequences are dense per chat, so a gap means a missed message: later messages are held until a
 * sync has filled the gap. After a reconnect, the sync starts at the last delivered sequence. A
 * chat that was neither opened nor synced starts with its first message that arrives.
 *
 *   offer(n)   n <= last: dropped as a duplicate      n == last + 1: delivered
 *              n >  last + 1: held, `onGap` requests a sync
 */
import { RollcallError } from './error.js';

/** Chats tracked. Beyond it, the oldest one that is not open is dropped. */
export const TRACKED_CHATS_MAX = 1000;

/** Messages held per chat behind a gap. Beyond it they are dropped: the sync fetches them again. */
export const HELD_MESSAGES_MAX = 500;

export class Chats {
  #logs = new Map();
  #fetchPage;
  #deliver;
  #onGap;

  /**
   * `fetchPage(chatId, afterSequence)` promises a sync_response; `deliver(message)` gives a message
   * to the application; `onGap(chatId)` must make sure that sync(chatId) is called.
   */
  constructor({ fetchPage, deliver, onGap }) {
    this.#fetchPage = fetchPage;
    this.#deliver = deliver;
    this.#onGap = onGap;
  }

  /** Marks a chat as open. Until begin() sets where it starts, its messages are held. */
  open(chatId, afterSequence) {
    const log = this.#log(chatId);
    log.open = true;
    if (afterSequence !== undefined) log.last = afterSequence;
  }

  /** A chat opened for the first time without `afterSequence` starts at the server's latest one. */
  begin(chatId, latestSequence) {
    const log = this.#log(chatId);
    if (log.last === null) log.last = Math.min(latestSequence, lowestHeld(log) - 1);
    this.#release(log);
  }

  close(chatId) {
    const log = this.#logs.get(chatId);
    if (log !== undefined) log.open = false;
  }

  isOpen(chatId) {
    return this.#logs.get(chatId)?.open === true;
  }

  lastSequence(chatId) {
    return this.#logs.get(chatId)?.last ?? null;
  }

  /** The chats a new connection must restore: open ones, and those with a gap. */
  get toRestore() {
    return [...this.#logs]
      .filter(([, log]) => log.open || log.held.size > 0 || log.missed)
      .map(([chatId]) => chatId);
  }

  /** All chats whose messages are counted, open or not. */
  get tracked() {
    return [...this.#logs].filter(([, log]) => log.open || log.last !== null).map(([chatId]) => chatId);
  }

  /**
   * Takes `sync_from_sequence` of a closing connection: chats whose messages the server dropped.
   */
  markMissed(syncAfterByChat) {
    for (const [chatId, sequence] of Object.entries(syncAfterByChat)) {
      const log = this.#log(chatId);
      log.missed = true;
      if (log.last === null && Number.isInteger(sequence)) log.last = Math.max(sequence, 0);
    }
  }

  offer(message) {
    const log = this.#log(message.chat_id);
    if (log.last === null && !log.open) log.last = message.sequence - 1;
    if (log.last !== null && message.sequence <= log.last) return;
    if (log.held.size < HELD_MESSAGES_MAX || message.sequence === log.last + 1) {
      log.held.set(message.sequence, message);
    }
    if (log.last === null) return;
    this.#release(log);
    if (log.held.size > 0 && log.syncing === null) this.#onGap(message.chat_id);
  }

  /** A message was deleted: if it is held behind a gap, it is delivered without its body. */
  onDeleted(chatId, sequence) {
    const held = this.#logs.get(chatId)?.held;
    const message = held?.get(sequence);
    if (message !== undefined) held.set(sequence, { ...message, body: undefined, deleted: true });
  }

  /** The server has a message with this sequence that only a sync can fetch. */
  expect(chatId, sequence) {
    const log = this.#log(chatId);
    if (log.last === null && !log.open) log.last = sequence - 1;
    if (log.last === null || sequence <= log.last) return;
    log.missed = true;
    if (log.syncing === null) this.#onGap(chatId);
  }

  /** Fetches pages until the server has no more. One sync per chat runs at a time. */
  sync(chatId) {
    const log = this.#log(chatId);
    log.syncing ??= this.#catchUp(chatId, log).finally(() => {
      log.syncing = null;
    });
    return log.syncing;
  }

  /** Skips the gap of a chat whose sync was refused for good. */
  abandonGap(chatId) {
    const log = this.#logs.get(chatId);
    if (log === undefined) return;
    log.missed = false;
    if (log.held.size === 0) return;
    log.last = lowestHeld(log) - 1;
    this.#release(log);
  }

  async #catchUp(chatId, log) {
    log.last ??= 0;
    for (;;) {
      const before = log.last;
      const page = await this.#fetchPage(chatId, before);
      for (const message of page.messages) this.offer(message);
      if (page.has_more) {
        if (log.last === before)
          throw new RollcallError('INVALID_MESSAGE', 'the sync does not advance', { chatId });
        continue;
      }
      this.#skipTo(log, page.latest_sequence);
      if (log.held.size === 0) break;
      if (log.last === before)
        throw new RollcallError('SERVICE_UNAVAILABLE', 'the sync lags behind', { chatId });
    }
    log.missed = false;
    return log.last;
  }

  /** If a complete sync left a gap below `latestSequence`, there are no messages in the gap. */
  #skipTo(log, latestSequence) {
    if (log.held.size > 0 && lowestHeld(log) <= latestSequence + 1) {
      log.last = lowestHeld(log) - 1;
      this.#release(log);
    }
  }

  #release(log) {
    for (const sequence of [...log.held.keys()]) {
      if (sequence <= log.last) log.held.delete(sequence);
    }
    for (
      let next = log.held.get(log.last + 1);
      next !== undefined;
      next = log.held.get(log.last + 1)
    ) {
      log.held.delete(next.sequence);
      log.last = next.sequence;
      this.#deliver(next);
    }
  }

  #log(chatId) {
    let log = this.#logs.get(chatId);
    if (log === undefined) {
      log = { last: null, held: new Map(), open: false, missed: false, syncing: null };
      this.#logs.set(chatId, log);
      this.#dropSurplus();
    }
    return log;
  }

  #dropSurplus() {
    if (this.#logs.size <= TRACKED_CHATS_MAX) return;
    for (const [chatId, log] of this.#logs) {
      if (log.open || log.syncing !== null) continue;
      this.#logs.delete(chatId);
      return;
    }
  }
}

function lowestHeld(log) {
  return log.held.size === 0 ? Infinity : Math.min(...log.held.keys());
}
