/**
 * Validates the part of JSON Schema that docs/openapi.json uses. An unknown keyword is an error, so
 * that no part of the description goes unchecked.
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

/** The target of a local reference (`#/…`). */
export function resolve(document, { $ref }) {
  return $ref
    .slice(2)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((at, part) => at?.[part], document);
}

/** Follows references until the target is not a reference. */
export function follow(document, thing) {
  let at = thing;
  while (at?.$ref !== undefined) at = resolve(document, at);
  return at;
}

/** One check per keyword: true, or what is wrong with the value. */
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
    const memberPath = `${path}.${name}`;
    if (name in properties) yield* problems(document, properties[name], member, memberPath);
    else if (additionalProperties === false) yield `${memberPath} is not described`;
    else yield* problems(document, additionalProperties, member, memberPath);
  }
}

/**
 * Yields everything that is wrong with a value. A member that no schema describes is wrong: clients must
 * accept it, but the description would be incomplete.
 */
export function* problems(document, schema, value, path = '$') {
  if (schema === true) return;
  if (schema.$ref !== undefined) {
    yield* problems(document, resolve(document, schema), value, path);
    return;
  }
  for (const [keyword, wanted] of Object.entries(schema)) {
    if (NOTES.has(keyword) || STRUCTURE.has(keyword)) continue;
    if (!(keyword in KEYWORDS)) throw new Error(`${path}: unsupported keyword ${keyword}`);
    const verdict = KEYWORDS[keyword](value, wanted);
    if (verdict !== true) yield `${path} ${verdict}`;
  }
  if (schema.oneOf !== undefined) {
    const matching = schema.oneOf.filter((one) => [...problems(document, one, value)].length === 0);
    if (matching.length !== 1) yield `${path} matches ${matching.length} of its variants`;
  }
  if (isObject(value) && (schema.properties || schema.type === 'object'))
    yield* memberProblems(document, schema, value, path);
  if (Array.isArray(value) && schema.items !== undefined)
    for (const [index, item] of value.entries())
      yield* problems(document, schema.items, item, `${path}[${index}]`);
}
