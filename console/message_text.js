/** The text of a message, with its web addresses as links. */

/** Ends before spaces, quotes and brackets that are not part of an address. */
const ADDRESS = /\bhttps?:\/\/[^\s<>"'`]+/giu;

/** Punctuation after an address belongs to the sentence. */
const SENTENCE_END = /[.,;:!?…]+$/u;

/** Returns nodes; the text never becomes markup. */
export function textWithLinks(text) {
  const nodes = [];
  let end = 0;
  for (const { 0: found, index } of text.matchAll(ADDRESS)) {
    const address = trimmed(found);
    if (!isWebAddress(address)) continue;
    nodes.push(text.slice(end, index), link(address));
    end = index + address.length;
  }
  nodes.push(text.slice(end));
  return nodes;
}

/** A closing bracket belongs to the address only if it was opened there. */
function trimmed(found) {
  const address = found.replace(SENTENCE_END, '');
  const unopened = address.endsWith(')') && address.split(')').length > address.split('(').length;
  return unopened ? trimmed(address.slice(0, -1)) : address;
}

function isWebAddress(address) {
  try {
    return ['http:', 'https:'].includes(new URL(address).protocol);
  } catch {
    return false;
  }
}

function link(address) {
  const anchor = document.createElement('a');
  anchor.href = address;
  anchor.target = '_blank';
  anchor.rel = 'noopener noreferrer';
  anchor.textContent = address;
  return anchor;
}
