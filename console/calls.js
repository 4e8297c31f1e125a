/**
 * The user's call: there is at most one.
 *
 *   idle ── ring() ──────────► calling ── call_accepted ──► active
 *     └──── call_incoming ───► incoming ── accept() ──────► active
 *   calling, incoming, active ── hangUp(), call_rejected, call_ended, error ──► ended
 *   ended ── a few seconds, or the next call ──► idle, calling, incoming
 *
 * A page that was reloaded gets the state of its call from the server after it has connected with
 * its old device id (tab_memory.js); it then returns to the call, and negotiates the audio anew.
 *
 * If two users call each other at the same time, the server makes one call of it. `from` of
 * `call_accepted` is then the caller, who makes the WebRTC offer.
 */
import { AudioConnection } from './audio_connection.js';

const ENDED_SHOWN_MS = 4000;

/** After a reconnect the server sends the state of a call; if it does not, the call is over. */
const CONFIRM_WAIT_MS = 3000;

const LIVE = ['calling', 'incoming', 'active'];

const ENDINGS = {
  hangup: 'Call ended',
  rejected: 'Declined',
  cancelled: 'Call cancelled',
  timeout: 'No answer',
  busy: 'In another call',
  answered_elsewhere: 'Answered on another device',
  disconnected: 'Connection lost',
};

const REFUSALS = { CALL_BUSY: 'In another call', CALL_UNAVAILABLE: 'Cannot be reached now' };

export class Calls {
  #client;
  #me;
  #memory;
  #onChange;
  #onRemote;
  #call = null;

  /** `onChange(call)`: the call to show, or null. `onRemote(stream)`: the other side's audio. */
  constructor({ client, me, memory, onChange, onRemote }) {
    this.#client = client;
    this.#me = me;
    this.#memory = memory;
    this.#onChange = (call) => {
      if (this.live) memory.keepCall(me, call);
      else memory.forgetCall();
      onChange(call);
    };
    this.#onRemote = onRemote;
    client.on('call_incoming', (push) => this.#onIncoming(push));
    client.on('call_ringing', (push) => this.#onRinging(push));
    client.on('call_accepted', (push) => this.#onAccepted(push));
    client.on('call_rejected', (push) => this.#onEnded(push, 'rejected'));
    client.on('call_ended', (push) => this.#onEnded(push, push.reason));
    client.on('call_signal', ({ call_id: id, data }) => {
      if (this.#isCurrent(id)) this.#call.audio?.receive(data);
    });
    client.on('state', ({ state }) => this.#onStateChanged(state));
  }

  /** The call to show, or null. */
  get current() {
    return this.#call;
  }

  get live() {
    return this.#call !== null && LIVE.includes(this.#call.state);
  }

  async ring(peer) {
    if (this.live) return;
    const call = this.#begin({ state: 'calling', peer, outgoing: true });
    try {
      const { call_id: callId } = await this.#client.requestCall(peer);
      call.callId ??= callId;
      this.#onChange(this.#call);
      if (call.state === 'ended') await this.#client.endCall(callId);
    } catch (error) {
      this.#end(call, REFUSALS[error.code] ?? error.message);
    }
  }

  /** Creates the audio connection before accepting, because the offer may arrive at once. */
  async accept() {
    const call = this.#call;
    if (call?.state !== 'incoming') return;
    this.#activate(call, { offers: false });
    try {
      await this.#client.acceptCall(call.callId);
    } catch (error) {
      this.#end(call, error.message);
    }
  }

  /** Declines, cancels or ends the call, depending on its state. */
  hangUp() {
    const call = this.#call;
    if (!this.live) return;
    const { callId, state } = call;
    this.#end(call, { incoming: 'Declined', calling: 'Call cancelled' }[state] ?? 'Call ended');
    if (callId === null) return; // ring() ends it when its id is known
    const request =
      state === 'incoming' ? this.#client.rejectCall(callId) : this.#client.endCall(callId);
    request.catch(() => {});
  }

  mute(muted) {
    if (this.#call === null) return;
    this.#call.muted = muted;
    this.#call.audio?.mute(muted);
    this.#onChange(this.#call);
  }

  dispose() {
    this.hangUp();
    this.#onChange(null);
    clearTimeout(this.#call?.timer);
    this.#call = null;
  }

  // --- Messages from the server -------------------------------------------------------------------

  #onIncoming({ call_id: callId, from }) {
    if (this.#isCurrent(callId)) this.#confirm();
    else if (!this.live) this.#begin({ state: 'incoming', peer: from, callId });
    // Else the user is busy: the server refuses the call, or makes one call of two.
  }

  #onAccepted(push) {
    const call = this.#call;
    if (!this.live) {
      this.#resume(push, 'active');
      return;
    }
    const ours = call.callId === null && [push.from, push.to].includes(call.peer);
    if (!ours && !this.#isCurrent(push.call_id)) return;
    if (call.state === 'incoming') return; // accepted on another device; call_ended follows
    call.callId = push.call_id;
    if (call.state === 'active') this.#confirm();
    else this.#activate(call, { offers: push.from === this.#me });
  }

  #onEnded({ call_id: callId }, reason) {
    if (this.#isCurrent(callId)) this.#end(this.#call, ENDINGS[reason] ?? 'Call ended', reason);
  }

  #onRinging(push) {
    if (this.#isCurrent(push.call_id)) this.#confirm();
    else if (!this.live) this.#resume(push, 'calling');
  }

  /** Returns to the call that the page had before it was reloaded. */
  #resume({ call_id: callId, from, to }, state) {
    const kept = this.#memory.callOf(this.#me);
    if (kept?.callId !== callId) return;
    const calls = from === this.#me;
    const { startedMs, muted } = kept;
    const peer = calls ? to : from;
    const call = this.#begin({ state: 'calling', peer, outgoing: calls, callId, startedMs, muted });
    if (state === 'active') this.#activate(call, { offers: calls, resumes: true });
  }

  #isCurrent(callId) {
    return this.live && this.#call.callId === callId;
  }

  // --- States -------------------------------------------------------------------------------------

  #begin(fields) {
    clearTimeout(this.#call?.timer);
    this.#call = {
      callId: null,
      outgoing: false,
      audio: null,
      media: 'new',
      silent: false,
      muted: false,
      startedMs: null,
      ending: null,
      unconfirmed: false,
      ...fields,
    };
    this.#onChange(this.#call);
    return this.#call;
  }

  #activate(call, { offers, resumes = false }) {
    call.state = 'active';
    call.audio = new AudioConnection({
      offers,
      resumes,
      signal: (data) => this.#client.signal(call.callId, data),
      events: {
        state: (media) => this.#onMediaChanged(call, media),
        remote: (stream) => this.#onRemote(stream),
        silent: () => {
          call.silent = true;
          this.#onChange(call);
        },
      },
    });
    call.audio.mute(call.muted);
    this.#onChange(call);
  }

  #onMediaChanged(call, media) {
    call.media = media;
    if (media === 'connected') call.startedMs ??= Date.now();
    if (call === this.#call) this.#onChange(call);
  }

  #end(call, ending, reason = null) {
    if (call.state === 'ended') return;
    call.missed = call.state === 'incoming' && ['cancelled', 'timeout'].includes(reason);
    call.state = 'ended';
    call.ending = ending;
    call.endedMs = Date.now();
    call.audio?.close();
    if (call !== this.#call) return;
    this.#onRemote(null);
    this.#onChange(call);
    call.timer = setTimeout(() => {
      if (call !== this.#call) return;
      this.#call = null;
      this.#onChange(null);
    }, ENDED_SHOWN_MS);
  }

  // --- Lost connections ---------------------------------------------------------------------------

  #onStateChanged(state) {
    const call = this.#call;
    if (!this.live) return;
    if (state === 'DISCONNECTED') call.unconfirmed = call.callId !== null;
    if (state !== 'READY' || !call.unconfirmed) return;
    setTimeout(() => {
      if (call.unconfirmed) this.#end(call, ENDINGS.disconnected);
    }, CONFIRM_WAIT_MS);
  }

  /** Restarts ICE, because signals may have been lost with the old connection. */
  #confirm() {
    if (!this.#call.unconfirmed) return;
    this.#call.unconfirmed = false;
    this.#call.audio?.restart();
  }
}
