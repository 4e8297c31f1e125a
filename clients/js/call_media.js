/**
 * What a user sends in a call: the microphone, and the camera while it is on.
 *
 * Without a microphone, or if the user does not allow it, silence is sent, so that the call works all the same.
 */

/** The user may not answer the browser's question; the other side must not wait for ever. */
const PERMISSION_WAIT_MS = 10000;

/** Promises `{stream, silent, stop()}`; never fails. */
export async function openMedia({ video = false } = {}) {
  for (const wanted of video ? [{ audio: true, video: true }, { audio: true }] : [{ audio: true }]) {
    const stream = await askUser(wanted).catch(() => null);
    if (stream !== null) return { stream, silent: false, stop: () => stopTracks(stream) };
  }
  return silence();
}

/** Promises the camera's track; rejects if there is none or the user does not allow it. */
export async function openCamera() {
  return (await askUser({ video: true })).getVideoTracks()[0];
}

/** Rejects if the page has no `mediaDevices`, as on a page without TLS. */
async function askUser(wanted) {
  let late = false;
  const asked = navigator.mediaDevices.getUserMedia(wanted).then((stream) => {
    if (late) stopTracks(stream);
    return stream;
  });
  let timer;
  const timeout = new Promise((resolve, reject) => {
    timer = setTimeout(() => reject(new Error('the user did not answer')), PERMISSION_WAIT_MS);
  });
  try {
    return await Promise.race([asked, timeout]);
  } catch (error) {
    late = true;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function silence() {
  const context = new AudioContext();
  const { stream } = context.createMediaStreamDestination();
  return { stream, silent: true, stop: () => context.close() };
}

function stopTracks(stream) {
  for (const track of stream.getTracks()) track.stop();
}
