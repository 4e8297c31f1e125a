/**
 * The audio to send: the microphone, or silence if there is none or the user does not allow it, so
 * that a call works without a microphone.
 */

/** The user may not answer the browser's question; the other side must not wait for ever. */
const PERMISSION_WAIT_MS = 10000;

/** Promises `{stream, silent, stop()}`; never fails. */
export async function openMicrophone() {
  let late = false;
  const asked = askForMicrophone().then((stream) => {
    if (late) stopTracks(stream);
    return stream;
  });
  const timeout = new Promise((resolve, reject) => {
    setTimeout(reject, PERMISSION_WAIT_MS);
  });
  try {
    const stream = await Promise.race([asked, timeout]);
    return { stream, silent: false, stop: () => stopTracks(stream) };
  } catch {
    late = true;
    return silence();
  }
}

/** Throws if the page has no `mediaDevices`, as on a page without TLS. */
async function askForMicrophone() {
  return navigator.mediaDevices.getUserMedia({ audio: true });
}

function silence() {
  const context = new AudioContext();
  const { stream } = context.createMediaStreamDestination();
  return { stream, silent: true, stop: () => context.close() };
}

function stopTracks(stream) {
  for (const track of stream.getTracks()) track.stop();
}
