/**
 * Messages that the server has not acknowledged yet.
 *
 * A message leaves the outbox when the server has acknowledged it or refused it for good. Until
 * then it is sent again, with the same `client_message_id`, after a lost connection, a missing
 * reply and every temporary error; the server recognises the repetition. One message per chat is in
 * flight, so that the next message cannot overtake a retry.
 *
 * The server limits a user's messages in all chats together. After RATE_LIMITED the chats take turns, one message at a
 * time, each after the time that the server names; otherwise all would be refused again and again. Such a refusal does
 * not count as a failed attempt.
 */
import { RollcallError } from './error.js';
import { retryDelayMs } from './backoff.js';

/** Unacknowledged messages in all chats together. Beyond it: QUEUE_FULL. */
export const OUTBOX_MAX = 100;

/** Attempts before sendMessage() fails; lost connections do not count. */
export const SEND_ATTEMPTS_MAX = 10;

export class Outbox {
  #timers;
  #random;
  #send;
  #isOpen;
  #queues = new Map();
  #draining = new Set();
  #size = 0;
  #isLimited = false;
  #turns = { last: Promise.resolve(), waiting: 0 };

  /** `send(entry)` promises the acknowledgement of {chatId, clientMessageId, body}. */
  constructor({ timers, random, send, isOpen }) {
    this.#timers = timers;
    this.#random = random;
    this.#send = send;
    this.#isOpen = isOpen;
  }

  get size() {
    return this.#size;
  }

  /** Promises the acknowledgement. */
  add(chatId, clientMessageId, body) {
    if (this.#size >= OUTBOX_MAX) {
      return Promise.reject(
        new RollcallError('QUEUE_FULL', `${OUTBOX_MAX} messages are unacknowledged`, {
          clientMessageId,
        }),
      );
    }
    return new Promise((resolve, reject) => {
      const queue = this.#queues.get(chatId) ?? [];
      queue.push({ chatId, clientMessageId, body, resolve, reject, attempts: 0 });
      this.#queues.set(chatId, queue);
      this.#size += 1;
      this.#drain(chatId);
    });
  }

  /** Resumes after a reconnect. */
  flush() {
    for (const chatId of this.#queues.keys()) this.#drain(chatId);
  }

  failAll(error) {
    const entries = [...this.#queues.values()].flat();
    this.#queues.clear();
    this.#draining.clear();
    this.#size = 0;
    this.#isLimited = false;
    this.#turns = { last: Promise.resolve(), waiting: 0 };
    for (const entry of entries) entry.reject(error);
  }

  async #drain(chatId) {
    if (this.#draining.has(chatId)) return;
    this.#draining.add(chatId);
    const queue = this.#queues.get(chatId);
    while (queue.length > 0 && this.#isOpen() && this.#queues.get(chatId) === queue) {
      await (this.#isLimited ? this.#inTurn(() => this.#attempt(queue[0])) : this.#attempt(queue[0]));
    }
    if (this.#queues.get(chatId) !== queue) return;
    this.#draining.delete(chatId);
    if (queue.length === 0) this.#queues.delete(chatId);
  }

  /** Runs `work` when all that came before has ended. */
  async #inTurn(work) {
    const turns = this.#turns;
    const earlier = turns.last;
    let end;
    turns.last = new Promise((resolve) => {
      end = resolve;
    });
    turns.waiting += 1;
    await earlier;
    await work();
    turns.waiting -= 1;
    if (turns === this.#turns) this.#isLimited &&= turns.waiting > 0;
    end();
  }

  async #attempt(entry) {
    if (!this.#isOpen()) return; // the connection was lost while others had their turns
    try {
      const ack = await this.#send(entry);
      if (this.#remove(entry)) entry.resolve(ack);
    } catch (error) {
      if (error.code === 'DISCONNECTED') return;
      const isLimited = error.code === 'RATE_LIMITED' && error.retryAfterSeconds > 0;
      if (isLimited) this.#isLimited = true;
      else entry.attempts += 1;
      if (error.retryable && entry.attempts < SEND_ATTEMPTS_MAX) {
        await this.#timers.pause(retryDelayMs(error, Math.max(entry.attempts - 1, 0), this.#random));
      } else if (this.#remove(entry)) {
        entry.reject(error);
      }
    }
  }

  /** Returns false if failAll() has removed it already. */
  #remove(entry) {
    const queue = this.#queues.get(entry.chatId);
    if (queue?.[0] !== entry) return false;
    queue.shift();
    this.#size -= 1;
    return true;
  }
}
