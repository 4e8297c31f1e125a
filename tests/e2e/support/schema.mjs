/**
 * JSON Schema as far as docs/openapi.json uses it. A keyword that is not known here is an error, so
 * that no promise of the description goes unchecked.
 */
const NOTES = new Set(['description', 'title', 'example', 'examples', 'default', 'deprecated']);
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

export const typeOf = (value) => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
};

const isType = (value, type) =>
  typeOf(value) === type || (type === 'number' && typeof value === 'number');

const isObject = (value) => typeOf(value) === 'object';

/** What a local reference (`#/…`) points to. */
export function resolve(document, { $ref }) {
  return $ref
    .slice(2)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((at, part) => at?.[part], document);
}

/** Follows references until something stands there itself. */
export function follow(document, thing) {
  let at = thing;
  while (at?.$ref !== undefined) at = resolve(document, at);
  return at;
}

/** One check a keyword: what is wrong with the value, or nothing. */
const KEYWORDS = {
  type: (value, types) =>
    [types].flat().some((type) => isType(value, type)) || `is ${typeOf(value)}, not ${types}`,
  enum: (value, allowed) => allowed.includes(value) || `is not one of ${allowed}`,
  const: (value, only) => value === only || `is not ${only}`,
  minimum: (value, least) => !(value < least) || `is less than ${least}`,
  maximum: (value, most) => !(value > most) || `is more than ${most}`,
  minLength: (value, least) => !(value?.length < least) || `is shorter than ${least}`,
  maxLength: (value, most) => !(value?.length > most) || `is longer than ${most}`,
  minItems: (value, least) => !(value?.length < least) || `has fewer than ${least} items`,
  maxItems: (value, most) => !(value?.length > most) || `has more than ${most} items`,
  pattern: (value, pattern) =>
    typeof value !== 'string' || new RegExp(pattern, 'u').test(value) || `is not ${pattern}`,
  format: (value, format) =>
    typeof value !== 'string' ||
    (format === 'date-time' && DATE_TIME.test(value)) ||
    `is not a ${format}`,
  required: (value, names) => {
    const missing = isObject(value) ? names.filter((name) => !(name in value)) : [];
    return missing.length === 0 || `lacks ${missing}`;
  },
};

const STRUCTURE = new Set(['properties', 'additionalProperties', 'items', 'oneOf', '$ref']);

function* memberProblems(document, schema, value, path) {
  const { properties = {}, additionalProperties = false } = schema;
  for (const [name, member] of Object.entries(value)) {
    const place = `${path}.${name}`;
    if (name in properties) yield* problems(document, properties[name], member, place);
    else if (additionalProperties === false) yield `${place} is not described`;
    else yield* problems(document, additionalProperties, member, place);
  }
}

/**
 * All that is wrong with a value. Members that no schema describes are wrong here: clients must take
 * them, but a description that lacks them is not complete.
 */
export function* problems(document, schema, value, path = '$') {
  if (schema === true) return;
  if (schema.$ref !== undefined) {
    yield* problems(document, resolve(document, schema), value, path);
    return;
  }
  for (const [keyword, wanted] of Object.entries(schema)) {
    if (NOTES.has(keyword) || STRUCTURE.has(keyword)) continue;
    if (!(keyword in KEYWORDS)) throw new Error(`${path}: the checker does not know ${keyword}`);
    const verdict = KEYWORDS[keyword](value, wanted);
    if (verdict !== true) yield `${path} ${verdict}`;
  }
  if (schema.oneOf !== undefined) {
    const fitting = schema.oneOf.filter((one) => [...problems(document, one, value)].length === 0);
    if (fitting.length !== 1) yield `${path} fits ${fitting.length} of its variants`;
  }
  if (isObject(value) && (schema.properties || schema.type === 'object'))
    yield* memberProblems(document, schema, value, path);
  if (Array.isArray(value) && schema.items !== undefined)
    for (const [index, item] of value.entries())
      yield* problems(document, schema.items, item, `${path}[${index}]`);
}
