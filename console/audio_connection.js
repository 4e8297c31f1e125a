/**
 * The audio of a call: a WebRTC connection that both sides negotiate through signals.
 *
 * Only the caller makes offers, so two offers cannot collide. Signals from the other side are
 * handled one by one, after the microphone is open. There is no relay server, so both sides must be
 * able to reach each other directly.
 */
import { openMicrophone } from './microphone.js';

export class AudioConnection {
  #connection = new RTCPeerConnection();
  #offers;
  #signal;
  #events;
  #microphone = null;
  #closed = false;
  #work;

  /**
   * `signal(data)` sends to the other side. `events`: `state(text)` with the connection's state,
   * `remote(stream)` with the other side's audio, `silent()` if there is no microphone.
   */
  constructor({ offers, signal, events }) {
    this.#offers = offers;
    this.#signal = signal;
    this.#events = events;
    const connection = this.#connection;
    connection.onicecandidate = ({ candidate }) => candidate && signal({ candidate });
    connection.ontrack = ({ streams, track }) =>
      events.remote(streams[0] ?? new MediaStream([track]));
    connection.onconnectionstatechange = () => this.#onStateChanged();
    if (offers) connection.onnegotiationneeded = () => this.#enqueue(() => this.#offer());
    this.#work = this.#addMicrophone();
  }

  /** Handles a signal from the other side. */
  receive(data) {
    this.#enqueue(() => this.#handleSignal(data));
  }

  /** Negotiates a new network path, because the network may have changed. */
  restart() {
    if (this.#offers && this.#connection.connectionState !== 'connected')
      this.#connection.restartIce();
  }

  mute(muted) {
    for (const track of this.#microphone?.stream.getTracks() ?? []) track.enabled = !muted;
  }

  close() {
    this.#closed = true;
    this.#connection.close();
    this.#microphone?.stop();
  }

  async #addMicrophone() {
    const microphone = await openMicrophone();
    if (this.#closed) {
      microphone.stop();
      return;
    }
    this.#microphone = microphone;
    if (microphone.silent) this.#events.silent();
    const { stream } = microphone;
    for (const track of stream.getTracks()) this.#connection.addTrack(track, stream);
  }

  /** If one step fails, such as a candidate of a network that is gone, the next steps still run. */
  #enqueue(work) {
    this.#work = this.#work
      .then(() => (this.#closed ? undefined : work()))
      .catch((error) => console.warn('call signal:', error.message));
  }

  async #offer() {
    await this.#connection.setLocalDescription();
    this.#signal({ description: this.#connection.localDescription });
  }

  async #handleSignal({ description, candidate }) {
    if (candidate) await this.#connection.addIceCandidate(candidate);
    if (!description || (description.type === 'offer') === this.#offers) return;
    await this.#connection.setRemoteDescription(description);
    if (description.type !== 'offer') return;
    await this.#connection.setLocalDescription();
    this.#signal({ description: this.#connection.localDescription });
  }

  #onStateChanged() {
    const { connectionState } = this.#connection;
    this.#events.state(connectionState);
    if (connectionState === 'failed') this.restart();
  }
}
