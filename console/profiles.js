/** The names that users have chosen for themselves; the server shows them to contacts and chat members. */
export class Profiles {
  #names = new Map();

  /** Takes what the server tells about a user; without a name the id is shown. */
  set(user, { display_name: name }) {
    if (name) this.#names.set(user, name);
    else this.#names.delete(user);
  }

  /** The name to show for a user; messages of the system have none. */
  nameOf(user) {
    return user === null ? 'System' : (this.#names.get(user) ?? user);
  }
}
