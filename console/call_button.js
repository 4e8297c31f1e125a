/** The button that calls a contact; all of them on the page agree about what is possible now. */

/** `call` is the user's call, or null. A user is in one call at a time. */
export function drawCallButton(button, name, call) {
  const live = call !== null && call.state !== 'ended';
  const withThem = live && call.peer === name;
  button.disabled = live;
  button.classList.toggle('in-call', withThem);
  const label = { true: `In a call with ${name}`, false: `Call ${name}` }[withThem];
  button.setAttribute('aria-label', label);
  button.title = label;
}
