/**
 * The backend of an application: it knows who its users are and who their friends are. It signs a token for each user, and
 * tells Rollcall about friendships.
 *
 *   node backend.mjs ROLLCALL_URL PORT
 */
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';

const [rollcall, port] = process.argv.slice(2);
const secret = readFileSync('secret', 'utf8').trim();
const TOKEN_SECONDS = 3600;

const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

function signToken(user, scope) {
  const now = Math.floor(Date.now() / 1000);
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ sub: user, scope, iat: now, exp: now + TOKEN_SECONDS })}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

/** Your own sign-in decides who asks; here everybody is who they say they are. */
const token = ({ user }) => ({ token: signToken(user) });

async function befriend({ user, friend }) {
  const path = `/v1/service/contacts/${encodeURIComponent(user)}/${encodeURIComponent(friend)}`;
  const headers = { Authorization: `Bearer ${signToken('backend', 'service')}` };
  const answer = await fetch(new URL(path, rollcall), { method: 'PUT', headers });
  return { ok: answer.ok };
}

async function sendFile(response, path, type) {
  response.setHeader('Content-Type', type);
  response.end(await readFile(new URL(path, import.meta.url)));
}

async function handle(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  const query = Object.fromEntries(searchParams);
  const library = /^\/rollcall\/(\w+\.js)$/.exec(pathname);
  if (pathname === '/token') response.end(JSON.stringify(token(query)));
  else if (pathname === '/friends' && request.method === 'POST') response.end(JSON.stringify(await befriend(query)));
  else if (pathname === '/settings') response.end(JSON.stringify({ rollcall }));
  else if (pathname === '/') await sendFile(response, 'index.html', 'text/html');
  else if (library) await sendFile(response, `../../clients/js/${library[1]}`, 'text/javascript');
  else response.writeHead(404).end();
}

createServer((request, response) => {
  handle(request, response).catch((error) => response.writeHead(500).end(error.message));
}).listen(Number(port), '127.0.0.1', () => console.log(`http://127.0.0.1:${port}/`));
