/** The sound of an incoming call: two soft notes every two seconds, made by the browser. */
const EVERY_MS = 2000;
const NOTES_HZ = [587, 784];
const NOTE_SECONDS = 0.45;
const VOLUME = 0.12;

export class Ringtone {
  #context = null;
  #timer = null;

  start() {
    if (this.#timer !== null) return;
    // A browser may keep it silent until the user has touched the page.
    this.#context = new AudioContext();
    this.#timer = setInterval(() => this.#ring(), EVERY_MS);
    this.#ring();
  }

  stop() {
    if (this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
    this.#context.close().catch(() => {});
  }

  #ring() {
    NOTES_HZ.forEach((hz, index) => this.#play(hz, index * NOTE_SECONDS));
  }

  #play(hz, delaySeconds) {
    const start = this.#context.currentTime + delaySeconds;
    const tone = new OscillatorNode(this.#context, { type: 'sine', frequency: hz });
    const volume = new GainNode(this.#context, { gain: 0 });
    volume.gain.linearRampToValueAtTime(VOLUME, start + 0.03);
    volume.gain.exponentialRampToValueAtTime(0.001, start + NOTE_SECONDS);
    tone.connect(volume).connect(this.#context.destination);
    tone.start(start);
    tone.stop(start + NOTE_SECONDS);
  }
}
