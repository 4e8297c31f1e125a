/** Types of `rollcall/call`: calls with WebRTC. */
import type { Rollcall, RollcallError } from './rollcall.js';

export type CallState = 'calling' | 'incoming' | 'active' | 'ended';

/** The user's call as it is now; a new object after every change. */
export interface CurrentCall {
  readonly state: CallState;
  /** null until the server has named it. */
  readonly callId: string | null;
  /** The other user. */
  readonly peer: string;
  readonly outgoing: boolean;
  /** The state of the connection; `connected` when media flow. */
  readonly media: RTCPeerConnectionState;
  readonly muted: boolean;
  /** Whether this side sends video. */
  readonly video: boolean;
  /** There is no microphone, or the user did not allow it. */
  readonly silent: boolean;
  /** When media first flowed, and when the call ended; milliseconds since 1970. */
  readonly startedMs: number | null;
  readonly endedMs: number | null;
  /** Why it ended. */
  readonly reason:
    | 'hangup'
    | 'rejected'
    | 'cancelled'
    | 'timeout'
    | 'busy'
    | 'unavailable'
    | 'answered_elsewhere'
    | 'disconnected'
    | 'failed'
    | null;
  /** With `busy`, `unavailable` and `failed`: the server's error. */
  readonly error: RollcallError | null;
  /** It rang here, and was not answered. */
  readonly missed: boolean;
  readonly localStream: MediaStream | null;
  readonly remoteStream: MediaStream | null;
}

export interface CallOptions {
  /** Send video from the start, if there is a camera. */
  video?: boolean;
}

/** Keeps a tab's device id and call over a reload. */
export class TabMemory {
  constructor();
  /** For `new Rollcall({ deviceId })`. */
  readonly deviceId: string;
  callOf(userId: string): { callId: string; startedMs: number | null; muted: boolean } | undefined;
  keepCall(userId: string, call: Pick<CurrentCall, 'callId' | 'startedMs' | 'muted'>): void;
  forgetCall(): void;
}

/** The calls of a client, one at a time. Make one for each client. */
export class Calls {
  constructor(client: Rollcall, options?: { memory?: TabMemory; endedShownMs?: number });

  /** The same object until something changes. */
  readonly current: CurrentCall | null;
  readonly isLive: boolean;
  subscribe(listener: () => void): () => void;

  place(userId: string, options?: CallOptions): Promise<void>;
  accept(options?: CallOptions): Promise<void>;
  decline(): void;
  hangUp(): void;
  mute(muted: boolean): void;
  setCamera(on: boolean): Promise<void>;
  dismiss(): void;
  dispose(): void;
}
