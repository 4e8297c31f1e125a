/**
 * Sound to send: the microphone, or silence where there is none or the user does not want it, so
 * that a call comes about all the same.
 */

/** A question the user does not answer must not keep the other side waiting for ever. */
const PERMISSION_WAIT_MS = 10000;

/** Promises `{stream, silent, stop()}`; never fails. */
export async function openMicrophone() {
  let late = false;
  const asked = askForMicrophone().then((stream) => {
    if (late) stopTracks(stream);
    return stream;
  });
  const patience = new Promise((resolve, reject) => {
    setTimeout(reject, PERMISSION_WAIT_MS);
  });
  try {
    const stream = await Promise.race([asked, patience]);
    return { stream, silent: false, stop: () => stopTracks(stream) };
  } catch {
    late = true;
    return silence();
  }
}

/** Throws where the page is not trusted with a microphone: there is no `mediaDevices` then. */
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
