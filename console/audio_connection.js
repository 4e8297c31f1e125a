/**
 * The audio of a call: a WebRTC connection that both sides negotiate through signals.
 *
 * Only the caller makes offers, so two offers cannot collide. Each new connection of the caller is a
 * round, and all its signals carry the round: an offer of another round makes the callee begin anew,
 * other signals of another round are late and are dropped. A callee whose page was reloaded asks for
 * a new round. There is no relay server, so both sides must be able to reach each other directly.
 */
import { uniqueId } from '/client/util.js';
import { openMicrophone } from './microphone.js';

export class AudioConnection {
  #connection = null;
  #round = null;
  #offers;
  #signal;
  #events;
  #microphone = null;
  #muted = false;
  #closed = false;
  #work;

  /**
   * `signal(data)` sends to the other side. `events`: `state(text)` with the connection's state,
   * `remote(stream)` with the other side's audio, `silent()` if there is no microphone. `resumes`:
   * the other side may still have an earlier connection.
   */
  constructor({ offers, resumes, signal, events }) {
    this.#offers = offers;
    this.#signal = signal;
    this.#events = events;
    this.#work = this.#openMicrophone();
    if (offers) this.#enqueue(() => this.#connect(uniqueId()));
    else if (resumes) signal({ renew: true });
  }

  /** Handles a signal from the other side, after those before and after the microphone is open. */
  receive(data) {
    this.#enqueue(() => this.#handleSignal(data));
  }

  /** Negotiates a new network path, because the network may have changed. */
  restart() {
    const state = this.#connection?.connectionState;
    if (this.#offers && state !== undefined && state !== 'connected') this.#connection.restartIce();
  }

  mute(muted) {
    this.#muted = muted;
    for (const track of this.#microphone?.stream.getTracks() ?? []) track.enabled = !muted;
  }

  close() {
    this.#closed = true;
    this.#connection?.close();
    this.#microphone?.stop();
  }

  async #openMicrophone() {
    const microphone = await openMicrophone();
    if (this.#closed) {
      microphone.stop();
      return;
    }
    this.#microphone = microphone;
    this.mute(this.#muted);
    if (microphone.silent) this.#events.silent();
  }

  #connect(round) {
    this.#connection?.close();
    this.#round = round;
    const connection = new RTCPeerConnection();
    this.#connection = connection;
    this.#events.state('new');
    connection.onicecandidate = ({ candidate }) => candidate && this.#signal({ round, candidate });
    connection.ontrack = ({ streams, track }) =>
      this.#events.remote(streams[0] ?? new MediaStream([track]));
    connection.onconnectionstatechange = () => this.#onStateChanged();
    if (this.#offers) connection.onnegotiationneeded = () => this.#enqueue(() => this.#describe());
    const { stream } = this.#microphone;
    for (const track of stream.getTracks()) connection.addTrack(track, stream);
  }

  /** If one step fails, such as a candidate of a network that is gone, the next steps still run. */
  #enqueue(work) {
    this.#work = this.#work
      .then(() => (this.#closed ? undefined : work()))
      .catch((error) => console.warn('call signal:', error.message));
  }

  /** Sends an offer or an answer, whichever is due. */
  async #describe() {
    const round = this.#round;
    await this.#connection.setLocalDescription();
    this.#signal({ round, description: this.#connection.localDescription });
  }

  async #handleSignal({ renew, round, description, candidate }) {
    const isOffer = description?.type === 'offer';
    if (renew && this.#offers) this.#connect(uniqueId());
    if (isOffer && !this.#offers && round !== this.#round) this.#connect(round);
    if (this.#round === null || round !== this.#round) return;
    if (candidate) await this.#connection.addIceCandidate(candidate);
    if (!description || isOffer === this.#offers) return;
    await this.#connection.setRemoteDescription(description);
    if (isOffer) await this.#describe();
  }

  #onStateChanged() {
    const { connectionState } = this.#connection;
    this.#events.state(connectionState);
    if (connectionState === 'failed') this.restart();
  }
}
