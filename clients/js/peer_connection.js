/**
 * The media of a call: a WebRTC connection that both sides negotiate through signals.
 *
 * Either side may make an offer at any time (perfect negotiation): if two offers collide, the polite side, which is the
 * callee, takes its own back. Every connection object has an id, and a signal names the id of its sender and, once
 * known, that of its receiver. So a page that was reloaded makes a new connection and an offer; the other side sees a
 * new id and begins anew, and late signals of the old connection are dropped.
 *
 * A signal is `{from, to, description, number}` or `{from, to, candidate}`. Each side numbers its offers, and an answer
 * has the number of its offer. A repeated offer is answered with the same answer, because the first one may have been
 * lost with the signalling connection.
 */
import { uniqueId } from './util.js';

/** A connection that is not there for this long is negotiated again, because a signal may be lost; the wait doubles. */
const RETRY_FIRST_MS = 4000;
const RETRY_MAX_MS = 30000;

export class PeerConnection {
  #polite;
  #signal;
  #events;
  #fetchIceServers;
  #connection = null;
  #id = null;
  #peerId = null;
  #number = 0;
  #peerNumber = 0;
  #ignoresOffer = false;
  #stream;
  #closed = false;
  #retryTimer;
  #work;

  /**
   * `media` promises the stream to send. `signal(data)` sends to the other side. `fetchIceServers()` promises the
   * servers for the connection. `events`: `state(text)` with the connection's state, `remote(stream)` with what the
   * other side sends. `starts`: makes the first offer; else it waits for one.
   */
  constructor({ polite, starts, media, signal, fetchIceServers, events }) {
    this.#polite = polite;
    this.#signal = signal;
    this.#fetchIceServers = fetchIceServers;
    this.#events = events;
    this.#work = media.then((stream) => {
      this.#stream = stream;
    });
    if (starts) this.#enqueue(() => this.#connect());
  }

  /** Handles a signal from the other side, after those before. */
  receive(data) {
    this.#enqueue(() => this.#handle(data));
  }

  /** Signals may have been lost: repeats the open offer, or looks for a new network path. */
  resume() {
    this.#enqueue(() => this.#resume());
  }

  /** Sends one more track of the stream; the two sides negotiate again. */
  addTrack(track) {
    this.#enqueue(async () => {
      const isIdle = ({ sender, receiver }) =>
        sender.track === null && receiver.track.kind === track.kind;
      const idle = this.#connection?.getTransceivers().find(isIdle);
      if (idle === undefined) {
        this.#connection?.addTrack(track, this.#stream);
        return;
      }
      idle.sender.setStreams(this.#stream); // a new one each time would let the description grow
      idle.direction = 'sendrecv';
      await idle.sender.replaceTrack(track);
    });
  }

  removeTrack(track) {
    this.#enqueue(() => {
      const sender = this.#connection?.getSenders().find((one) => one.track === track);
      if (sender !== undefined) this.#connection.removeTrack(sender);
    });
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#retryTimer);
    this.#connection?.close();
  }

  async #connect() {
    this.#id = uniqueId();
    this.#peerId = null;
    this.#peerNumber = 0;
    this.#ignoresOffer = false;
    await this.#open();
  }

  /** Makes the connection, instead of the one before. */
  async #open() {
    this.#connection?.close();
    const iceServers = await this.#fetchIceServers();
    if (this.#closed) return;
    const connection = new RTCPeerConnection({ iceServers });
    this.#connection = connection;
    this.#events.state('new');
    connection.onicecandidate = ({ candidate }) => candidate && this.#send({ candidate });
    connection.ontrack = ({ streams, track }) =>
      this.#events.remote(streams[0] ?? new MediaStream([track]));
    connection.onconnectionstatechange = () => this.#onStateChanged();
    connection.onnegotiationneeded = () => this.#enqueue(() => this.#offer());
    for (const track of this.#stream.getTracks()) connection.addTrack(track, this.#stream);
    this.#retryAfter(RETRY_FIRST_MS);
  }

  /** If one step fails, such as a candidate of a network that is gone, the next steps still run. */
  #enqueue(work) {
    this.#work = this.#work
      .then(() => (this.#closed ? undefined : work()))
      .catch((error) => console.warn('call signal:', error.message));
  }

  #send(fields) {
    this.#signal({ from: this.#id, to: this.#peerId, ...fields });
  }

  #sendDescription() {
    const { localDescription: description } = this.#connection;
    const number = description.type === 'offer' ? this.#number : this.#peerNumber;
    this.#send({ description, number });
  }

  async #offer() {
    if (this.#connection.signalingState !== 'stable') return; // the event comes again when it is
    this.#number += 1;
    await this.#connection.setLocalDescription();
    this.#sendDescription();
  }

  async #handle({ from, to, description, candidate, number }) {
    const isOffer = description?.type === 'offer';
    const isForUs = to === this.#id && this.#id !== null;
    if (to && !isForUs) return; // for an earlier connection of ours
    const isNewPeer = from !== this.#peerId;
    if (isNewPeer && !isOffer && (!isForUs || this.#peerId !== null)) return; // late
    if (isNewPeer && isOffer && (this.#connection === null || this.#peerId !== null))
      await this.#connect();
    if (this.#closed) return;
    this.#peerId = from;
    if (candidate) await this.#addCandidate(candidate);
    else if (isOffer) await this.#takeOffer(description, number, isNewPeer);
    else if (description) await this.#takeAnswer(description, number);
  }

  async #takeAnswer(description, number) {
    const isOpen = this.#connection.signalingState === 'have-local-offer';
    if (isOpen && number === this.#number) await this.#connection.setRemoteDescription(description);
  }

  async #takeOffer(description, number, isNewPeer) {
    const connection = this.#connection;
    const isStable = connection.signalingState === 'stable';
    if (isStable && !isNewPeer && number === this.#peerNumber) {
      this.#sendDescription();
      return;
    }
    this.#ignoresOffer = !isStable && !this.#polite;
    if (this.#ignoresOffer) {
      if (isNewPeer) this.#sendDescription(); // it may have missed our offer
      return;
    }
    // Chromium gathers no candidates after it has taken a first offer back, so the connection is made anew.
    if (!isStable && connection.remoteDescription === null) await this.#open();
    if (this.#closed) return;
    await this.#connection.setRemoteDescription(description);
    await this.#connection.setLocalDescription();
    this.#peerNumber = number;
    this.#sendDescription();
  }

  /** Candidates of an offer that was ignored do not fit. */
  async #addCandidate(candidate) {
    try {
      await this.#connection.addIceCandidate(candidate);
    } catch (error) {
      if (!this.#ignoresOffer) throw error;
    }
  }

  #onStateChanged() {
    const { connectionState } = this.#connection;
    this.#events.state(connectionState);
    if (connectionState === 'failed') this.#enqueue(() => this.#restart());
    if (connectionState === 'connected') clearTimeout(this.#retryTimer);
    else if (connectionState !== 'connecting') this.#retryAfter(RETRY_FIRST_MS);
  }

  #retryAfter(waitMs) {
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(() => {
      this.resume();
      this.#retryAfter(Math.min(2 * waitMs, RETRY_MAX_MS));
    }, waitMs);
  }

  async #resume() {
    if (this.#connection?.signalingState === 'have-local-offer') this.#sendDescription();
    else if (this.#connection && this.#connection.connectionState !== 'connected')
      await this.#restart();
  }

  /** Negotiates a new network path, with fresh credentials, because the old ones may have expired. */
  async #restart() {
    const connection = this.#connection;
    const iceServers = await this.#fetchIceServers();
    if (this.#closed || connection !== this.#connection) return;
    connection.setConfiguration({ iceServers });
    connection.restartIce();
  }
}
