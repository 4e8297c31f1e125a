/**
 * Calls between two users: one call at a time, with audio and, if wanted, video.
 *
 *   const memory = new TabMemory();                      // so that a reload keeps the call
 *   const client = new Rollcall({ …, deviceId: memory.deviceId });
 *   const calls = new Calls(client, { memory });
 *   calls.subscribe(() => draw(calls.current));
 *   await calls.place('bob');                            // on the other side: calls.accept()
 *
 *   none ── place() ─────────► calling ── call_accepted ──► active
 *     └──── call_incoming ───► incoming ── accept() ──────► active
 *   calling, incoming, active ── hangUp(), call_rejected, call_ended, error ──► ended
 *   ended ── a few seconds, dismiss(), or the next call ──► none, calling, incoming
 *
 * A page that was reloaded gets the state of its call from the server after it has connected with its old device id; it
 * then returns to the call and negotiates anew. If two users call each other at the same time, the server makes one call
 * of it; `from` of `call_accepted` is then the caller.
 *
 * The servers for the connection come from `client.api.ice()`. `current` is the same object until something changes.
 */
import { openCamera, openMedia } from './call_media.js';
import { PeerConnection } from './peer_connection.js';
import { TabMemory } from './tab_memory.js';

export { TabMemory };

const ENDED_SHOWN_MS = 4000;

/** After a reconnect the server sends the state of a call; if it does not, the call is over. */
const CONFIRM_WAIT_MS = 3000;

/** A call does not wait longer for the list of STUN and TURN servers. */
const ICE_TIMEOUT_MS = 5000;

const LIVE = ['calling', 'incoming', 'active'];

/** Why a call ends when this user hangs up. */
const OWN_REASONS = { incoming: 'rejected', calling: 'cancelled', active: 'hangup' };

const REFUSALS = { CALL_BUSY: 'busy', CALL_UNAVAILABLE: 'unavailable' };

const FORGETFUL = { callOf: () => undefined, keepCall() {}, forgetCall() {} };

export class Calls {
  #client;
  #memory;
  #endedShownMs;
  #call = null;
  #snapshot = null;
  #listeners = new Set();
  #stops;

  /** `memory`: a TabMemory; without one a reload ends the call. */
  constructor(client, { memory = FORGETFUL, endedShownMs = ENDED_SHOWN_MS } = {}) {
    this.#client = client;
    this.#memory = memory;
    this.#endedShownMs = endedShownMs;
    this.#stops = [
      client.on('call_incoming', (push) => this.#onIncoming(push)),
      client.on('call_ringing', (push) => this.#onRinging(push)),
      client.on('call_accepted', (push) => this.#onAccepted(push)),
      client.on('call_rejected', (push) => this.#onEnded(push, 'rejected')),
      client.on('call_ended', (push) => this.#onEnded(push, push.reason)),
      client.on('call_signal', ({ call_id: callId, data }) => {
        if (this.#isCurrent(callId)) this.#call.peerConnection?.receive(data);
      }),
      client.on('state', ({ state }) => this.#onStateChanged(state)),
    ];
  }

  /** The call to show, or null. */
  get current() {
    return this.#snapshot;
  }

  /** Whether there is a call that has not ended. */
  get isLive() {
    return this.#call !== null && LIVE.includes(this.#call.state);
  }

  /** Calls back after every change; returns a function that ends it. */
  subscribe(listener) {
    const entry = () => listener();
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  /** Rings a contact. Rejects, and the call ends, if the server refuses; does nothing during a call. */
  async place(peer, { video = false } = {}) {
    if (this.isLive) return;
    const call = this.#begin({ state: 'calling', peer, outgoing: true, video });
    try {
      const { call_id: callId } = await this.#client.requestCall(peer);
      call.callId ??= callId;
      this.#changed();
      if (call.state === 'ended') await this.#client.endCall(callId);
    } catch (error) {
      this.#end(call, REFUSALS[error.code] ?? 'failed', error);
      throw error;
    }
  }

  /** Makes the connection before accepting, because the offer may arrive at once. */
  async accept({ video = false } = {}) {
    const call = this.#call;
    if (call?.state !== 'incoming') return;
    call.video = video;
    this.#activate(call, { starts: false });
    try {
      await this.#client.acceptCall(call.callId);
    } catch (error) {
      this.#end(call, 'failed', error);
      throw error;
    }
  }

  /** Declines, cancels or ends the call, depending on its state. */
  hangUp() {
    const call = this.#call;
    if (!this.isLive) return;
    const { callId, state } = call;
    this.#end(call, OWN_REASONS[state]);
    if (callId === null) return; // place() ends it when its id is known
    const request =
      state === 'incoming' ? this.#client.rejectCall(callId) : this.#client.endCall(callId);
    request.catch(() => {});
  }

  /** The same as hangUp(), for a call that rings here. */
  decline() {
    if (this.#call?.state === 'incoming') this.hangUp();
  }

  mute(muted) {
    if (this.#call === null) return;
    this.#call.muted = muted;
    this.#applyMute(this.#call);
    this.#changed();
  }

  /** Turns the camera on or off during a call; rejects if there is none or the user does not allow it. */
  async setCamera(on) {
    const call = this.#call;
    if (call?.state !== 'active' || call.video === on) return;
    const stream = await call.sends;
    if (on) {
      const track = await openCamera();
      if (call.state !== 'active') return track.stop();
      stream.addTrack(track);
      call.peerConnection.addTrack(track);
    } else {
      for (const track of stream.getVideoTracks()) {
        call.peerConnection.removeTrack(track);
        stream.removeTrack(track);
        track.stop();
      }
    }
    call.video = on;
    this.#changed();
  }

  /** No longer shows a call that has ended. */
  dismiss() {
    if (this.#call?.state !== 'ended') return;
    clearTimeout(this.#call.timer);
    this.#call = null;
    this.#changed();
  }

  /** Ends the call, and no longer listens to the client. */
  dispose() {
    this.hangUp();
    this.dismiss();
    for (const stop of this.#stops) stop();
    this.#listeners.clear();
  }

  // --- Messages from the server -------------------------------------------------------------------

  #onIncoming({ call_id: callId, from }) {
    if (this.#isCurrent(callId)) this.#confirm();
    else if (!this.isLive) this.#begin({ state: 'incoming', peer: from, callId });
    // Else the user is busy: the server refuses the call, or makes one call of two.
  }

  #onAccepted(push) {
    const call = this.#call;
    if (!this.isLive) {
      this.#return(push, 'active');
      return;
    }
    const ours = call.callId === null && [push.from, push.to].includes(call.peer);
    if (!ours && !this.#isCurrent(push.call_id)) return;
    if (call.state === 'incoming') return; // accepted on another device; call_ended follows
    call.callId = push.call_id;
    if (call.state === 'active') {
      this.#confirm();
      return;
    }
    call.outgoing = push.from === this.#client.userId;
    this.#activate(call, { starts: call.outgoing });
  }

  #onEnded({ call_id: callId }, reason) {
    if (this.#isCurrent(callId)) this.#end(this.#call, reason ?? 'hangup');
  }

  #onRinging(push) {
    if (this.#isCurrent(push.call_id)) this.#confirm();
    else if (!this.isLive) this.#return(push, 'calling');
  }

  /** Returns to the call that the page had before it was reloaded. */
  #return({ call_id: callId, from, to }, state) {
    const me = this.#client.userId;
    const kept = this.#memory.callOf(me);
    if (kept?.callId !== callId) return;
    const outgoing = from === me;
    const { startedMs, muted } = kept;
    const peer = outgoing ? to : from;
    const call = this.#begin({ state: 'calling', peer, outgoing, callId, startedMs, muted });
    if (state === 'active') this.#activate(call, { starts: true });
  }

  #isCurrent(callId) {
    return this.isLive && this.#call.callId === callId;
  }

  // --- States -------------------------------------------------------------------------------------

  #begin(fields) {
    clearTimeout(this.#call?.timer);
    this.#call = {
      callId: null,
      outgoing: false,
      media: 'new',
      video: false,
      silent: false,
      muted: false,
      startedMs: null,
      endedMs: null,
      reason: null,
      error: null,
      missed: false,
      localStream: null,
      remoteStream: null,
      // Not part of the snapshot:
      peerConnection: null,
      sends: null,
      stopMedia: () => {},
      unconfirmed: false,
      ...fields,
    };
    this.#changed();
    return this.#call;
  }

  #activate(call, { starts }) {
    call.state = 'active';
    call.sends = this.#openMedia(call);
    call.peerConnection = new PeerConnection({
      polite: !call.outgoing,
      starts,
      media: call.sends,
      signal: (data) => this.#client.signal(call.callId, data),
      fetchIceServers: () => this.#fetchIceServers(),
      events: {
        state: (media) => this.#onMediaChanged(call, media),
        remote: (stream) => {
          call.remoteStream = stream;
          this.#changed();
        },
      },
    });
    this.#changed();
  }

  async #openMedia(call) {
    const { stream, silent, stop } = await openMedia({ video: call.video });
    call.stopMedia = () => {
      for (const track of stream.getTracks()) track.stop();
      stop();
    };
    if (call.state === 'ended') call.stopMedia();
    call.silent = silent;
    call.video = stream.getVideoTracks().length > 0;
    call.localStream = stream;
    this.#applyMute(call);
    this.#changed();
    return stream;
  }

  /** Without an answer the call is tried without servers: it connects inside one network. */
  async #fetchIceServers() {
    const answer = await this.#client.api.ice({ timeoutMs: ICE_TIMEOUT_MS }).catch(() => null);
    return answer?.iceServers ?? [];
  }

  #applyMute({ localStream, muted }) {
    for (const track of localStream?.getAudioTracks() ?? []) track.enabled = !muted;
  }

  #onMediaChanged(call, media) {
    call.media = media;
    if (media === 'connected') call.startedMs ??= Date.now();
    this.#changed();
  }

  #end(call, reason, error = null) {
    if (call.state === 'ended') return;
    call.missed = call.state === 'incoming' && ['cancelled', 'timeout'].includes(reason);
    call.state = 'ended';
    call.reason = reason;
    call.error = error;
    call.endedMs = Date.now();
    call.remoteStream = null;
    call.localStream = null;
    call.peerConnection?.close();
    call.stopMedia();
    if (call !== this.#call) return;
    call.timer = setTimeout(() => call === this.#call && this.dismiss(), this.#endedShownMs);
    this.#changed();
  }

  #changed() {
    this.#snapshot = this.#call === null ? null : snapshotOf(this.#call);
    if (this.isLive) this.#memory.keepCall(this.#client.userId, this.#call);
    else this.#memory.forgetCall();
    for (const listener of [...this.#listeners]) listener();
  }

  // --- Lost connections ---------------------------------------------------------------------------

  #onStateChanged(state) {
    const call = this.#call;
    if (!this.isLive) return;
    if (state === 'DISCONNECTED') call.unconfirmed = call.callId !== null;
    if (state !== 'READY' || !call.unconfirmed) return;
    setTimeout(() => {
      if (call.unconfirmed) this.#end(call, 'disconnected');
    }, CONFIRM_WAIT_MS);
  }

  /** The call goes on; signals may have been lost with the old connection. */
  #confirm() {
    if (!this.#call.unconfirmed) return;
    this.#call.unconfirmed = false;
    this.#call.peerConnection?.resume();
  }
}

function snapshotOf({ peerConnection, sends, stopMedia, unconfirmed, timer, ...shown }) {
  return Object.freeze(shown);
}
