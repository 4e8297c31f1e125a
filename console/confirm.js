/** Asks the user before something that is hard to undo. */
const byId = (id) => document.getElementById(id);

/** Promises whether the user agreed. Escape and Cancel mean no. */
export function confirmAction({ title, text, action }) {
  const dialog = byId('confirm');
  byId('confirm-title').textContent = title;
  byId('confirm-text').textContent = text;
  byId('confirm-yes').textContent = action;
  dialog.returnValue = 'cancel';
  dialog.showModal();
  byId('confirm-cancel').focus();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue === 'yes');
  });
}
