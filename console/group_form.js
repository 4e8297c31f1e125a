/** The dialog that makes a group of contacts and other users. */
const byId = (id) => document.getElementById(id);

export class GroupForm {
  #dialog = byId('group-dialog');

  /** `onCreate(name, members)` promises the group; the dialog shows its error. */
  constructor({ onCreate }) {
    byId('group-cancel').onclick = () => this.#dialog.close();
    byId('group-form').onsubmit = async (event) => {
      event.preventDefault();
      this.#showProblem(null);
      try {
        await onCreate(byId('group-name').value.trim(), this.#members);
        this.#dialog.close();
      } catch (error) {
        this.#showProblem(error.message);
      }
    };
  }

  open(contacts) {
    byId('group-form').reset();
    this.#showProblem(null);
    const legend = byId('group-contacts').firstElementChild;
    byId('group-contacts').replaceChildren(legend, ...contacts.map(contactChoice));
    byId('group-contacts').hidden = contacts.length === 0;
    this.#dialog.showModal();
  }

  dispose() {
    this.#dialog.close();
  }

  get #members() {
    const chosen = [...byId('group-contacts').querySelectorAll('input:checked')];
    const typed = byId('group-others').value.split(',').map((name) => name.trim());
    return [...new Set([...chosen.map(({ value }) => value), ...typed.filter(Boolean)])];
  }

  #showProblem(problem) {
    byId('group-problem').hidden = problem === null;
    byId('group-problem').textContent = problem ?? '';
  }
}

function contactChoice(name) {
  const label = document.createElement('label');
  label.className = 'check';
  label.dir = 'auto';
  const box = document.createElement('input');
  box.type = 'checkbox';
  box.value = name;
  label.append(box, ` ${name}`);
  return label;
}
