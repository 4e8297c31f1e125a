/**
 * The sound between two people: a WebRTC connection whose two ends agree through signals.
 *
 * The caller offers, the callee answers; only the caller ever offers, so offers cannot cross. What
 * the other side signals is worked off one by one, and not before the own sound is there. Candidates
 * go directly: there is no relay, so both must be able to reach each other.
 */
import { openMicrophone } from './microphone.js';

export class SoundLink {
  #connection = new RTCPeerConnection();
  #offers;
  #signal;
  #events;
  #sound = null;
  #closed = false;
  #work;

  /**
   * `signal(data)` reaches the other side. `events`: `state(text)` with the connection's state,
   * `remote(stream)` with the other's sound, `silent()` if there is no microphone.
   */
  constructor({ offers, signal, events }) {
    this.#offers = offers;
    this.#signal = signal;
    this.#events = events;
    const connection = this.#connection;
    connection.onicecandidate = ({ candidate }) => candidate && signal({ candidate });
    connection.ontrack = ({ streams, track }) =>
      events.remote(streams[0] ?? new MediaStream([track]));
    connection.onconnectionstatechange = () => this.#stateChanged();
    if (offers) connection.onnegotiationneeded = () => this.#then(() => this.#offer());
    this.#work = this.#addSound();
  }

  /** What the other side signalled. */
  receive(data) {
    this.#then(() => this.#take(data));
  }

  /** Looks for another way, when the network may have changed. */
  restart() {
    if (this.#offers && this.#connection.connectionState !== 'connected')
      this.#connection.restartIce();
  }

  mute(muted) {
    for (const track of this.#sound?.stream.getTracks() ?? []) track.enabled = !muted;
  }

  close() {
    this.#closed = true;
    this.#connection.close();
    this.#sound?.stop();
  }

  async #addSound() {
    const sound = await openMicrophone();
    if (this.#closed) {
      sound.stop();
      return;
    }
    this.#sound = sound;
    if (sound.silent) this.#events.silent();
    for (const track of sound.stream.getTracks()) this.#connection.addTrack(track, sound.stream);
  }

  /** A piece that fails, such as a candidate of a network that is gone, does not end the rest. */
  #then(work) {
    this.#work = this.#work
      .then(() => (this.#closed ? undefined : work()))
      .catch((error) => console.warn('call signal:', error.message));
  }

  async #offer() {
    await this.#connection.setLocalDescription();
    this.#signal({ description: this.#connection.localDescription });
  }

  async #take({ description, candidate }) {
    if (candidate) await this.#connection.addIceCandidate(candidate);
    if (!description || (description.type === 'offer') === this.#offers) return;
    await this.#connection.setRemoteDescription(description);
    if (description.type !== 'offer') return;
    await this.#connection.setLocalDescription();
    this.#signal({ description: this.#connection.localDescription });
  }

  #stateChanged() {
    const { connectionState } = this.#connection;
    this.#events.state(connectionState);
    if (connectionState === 'failed') this.restart();
  }
}
