/** The bar that shows a call: ringing, its duration, and its buttons. */
import { clock, drawAvatar } from './wording.js';

const TICK_MS = 500;

const MEDIA = {
  new: 'connecting …',
  connecting: 'connecting …',
  disconnected: 'connection interrupted …',
  failed: 'cannot reach the other side',
};

const ENDINGS = {
  hangup: 'Call ended',
  rejected: 'Declined',
  cancelled: 'Call cancelled',
  timeout: 'No answer',
  busy: 'In another call',
  unavailable: 'Cannot be reached now',
  answered_elsewhere: 'Answered on another device',
  disconnected: 'Connection lost',
};

const endingOf = ({ reason, error }) => ENDINGS[reason] ?? error?.message ?? ENDINGS.hangup;

const byId = (id) => document.getElementById(id);

export class CallBar {
  #bar = byId('call');
  #call = null;
  #shown = null;
  #ticker;
  #nameOf;

  constructor({ nameOf, onAccept, onHangUp, onMute }) {
    this.#nameOf = nameOf;
    byId('call-accept').onclick = onAccept;
    byId('call-end').onclick = onHangUp;
    byId('call-mute').onclick = () => onMute(!this.#call.muted);
  }

  draw(call) {
    this.#call = call;
    this.#play(call?.remoteStream ?? null);
    clearInterval(this.#ticker);
    this.#bar.hidden = call === null;
    if (call === null) {
      this.#shown = null;
      return;
    }
    this.#bar.dataset.state = call.state;
    this.#bar.dataset.media = call.media;
    const name = this.#nameOf(call.peer);
    byId('call-name').textContent = name;
    drawAvatar(byId('call-avatar'), call.peer, name);
    this.#drawButtons(call);
    this.#drawText();
    if (call.state === 'active') this.#ticker = setInterval(() => this.#drawText(), TICK_MS);
    this.#announce(call);
  }

  dispose() {
    clearInterval(this.#ticker);
    this.draw(null);
  }

  #play(stream) {
    const audio = byId('call-sound');
    if (audio.srcObject === stream) return;
    audio.srcObject = stream;
    if (stream !== null) audio.play().catch(() => {}); // no sound device, or not allowed
  }

  #drawButtons({ state, muted }) {
    byId('call-accept').hidden = state !== 'incoming';
    byId('call-mute').hidden = state !== 'active';
    byId('call-mute').setAttribute('aria-pressed', String(muted));
    byId('call-end').hidden = state === 'ended';
    byId('call-end').textContent =
      { incoming: 'Decline', calling: 'Cancel' }[state] ?? 'Hang up';
  }

  #drawText() {
    const text = byId('call-text');
    const described = this.#describe(this.#call);
    if (text.textContent !== described) text.textContent = described;
  }

  #describe(call) {
    if (call.state === 'incoming') return 'is calling you';
    if (call.state === 'calling') return 'ringing …';
    const spent = call.startedMs === null ? null : (call.endedMs ?? Date.now()) - call.startedMs;
    const time = spent === null ? [] : [clock(spent / 1000)];
    if (call.state === 'ended') return [endingOf(call), ...time].join(' · ');
    const quiet = call.silent ? ['no microphone'] : [];
    return [...time, ...(MEDIA[call.media] ? [MEDIA[call.media]] : []), ...quiet].join(' · ');
  }

  /** Announces each state once to screen readers, without the running time. */
  #announce(call) {
    const state = `${call.peer} ${call.state}`;
    if (state === this.#shown) return;
    this.#shown = state;
    const said = { active: 'Call answered', ended: endingOf(call) }[call.state] ?? this.#describe(call);
    byId('announcer').textContent = `${this.#nameOf(call.peer)}: ${said}`;
    const idle = document.activeElement === document.body; // do not take the focus while the user types
    if (call.state === 'incoming' && idle) byId('call-accept').focus();
  }
}
