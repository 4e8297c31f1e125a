/** Users who do more than people do: their budgets stop them, and nobody else notices. */
import assert from 'node:assert/strict';
import { abuse } from '../support/abuse.mjs';
import { makeChat } from '../support/chats.mjs';
import { metric, rest } from '../support/client.mjs';
import { befriend } from '../support/contacts.mjs';

/** What a budget allows in this time, and a little more, because clocks are read at different moments. */
const allowed = (burst, perSecond, seconds) => burst + Math.ceil(perSecond * (seconds + 1)) + 1;

/** Every refusal says when to retry. */
function expectRetryTimes({ retryAfter }) {
  assert.ok(retryAfter.length > 0, 'something was refused');
  for (const seconds of retryAfter) assert.ok(seconds > 0, `retry after ${seconds} s`);
}

const pushes = (client, wanted) => client.messages.filter(({ type }) => type === wanted).length;
const settingsOf = (visibility) => JSON.stringify({ presence_visibility: visibility });

abuse([
  {
    name: 'contact requests to one user who is no contact stop at the burst',
    ms: 5000,
    attack: {
      kind: 'rest',
      connections: 8,
      requests: [
        ['POST', '/v1/contact-requests', JSON.stringify({ to: 'victim-0' })],
        ['POST', '/v1/contact-requests', JSON.stringify({ to: 'victim-0-friend' })],
      ],
    },
    async check({ attack, server, victim }) {
      const accepted = (attack.answers[200] ?? 0) + (attack.answers[201] ?? 0);
      assert.ok(accepted >= 1 && accepted <= 21, `${accepted} accepted`);
      assert.ok(attack.answers[429] > 100, `${attack.answers[429]} refused`);
      expectRetryTimes(attack);
      assert.ok(pushes(victim.client, 'contact_request') <= 21);
      assert.ok((await metric(server, 'limits_refused_contact_requests')) > 0);
      assert.match(server.log(), /event=over_budget user="?attacker-0"? class=contact_requests/);
    },
  },
  {
    name: 'changes of settings stop at thirty a minute, and so does their re-evaluation',
    ms: 5000,
    attack: {
      kind: 'rest',
      connections: 4,
      requests: [
        ['PATCH', '/v1/me', settingsOf('nobody')],
        ['PATCH', '/v1/me', settingsOf('everyone')],
      ],
    },
    async prepare({ server, victim, attacker }) {
      await befriend(server, victim.name, attacker);
      assert.equal((await victim.client.subscribe(attacker)).length, 1);
    },
    async check({ attack, victim, seconds }) {
      const most = allowed(30, 0.5, seconds);
      assert.ok(attack.answers[200] >= 1 && attack.answers[200] <= most, `${attack.answers[200]} accepted`);
      assert.ok(attack.answers[429] > 100, `${attack.answers[429]} refused`);
      assert.ok(pushes(victim.client, 'presence_changed') <= 2 * most);
      expectRetryTimes(attack);
    },
  },
  {
    name: 'messages from twenty connections of one user share one budget',
    ms: 5000,
    attack: {
      kind: 'websocket',
      connections: 20,
      batch: 2,
      everyMs: 50,
      frames: [
        JSON.stringify({ type: 'send_message', chat_id: 'flood', client_message_id: 'm{n}', body: 'x' }),
      ],
    },
    async prepare({ server, victim, attacker }) {
      await makeChat(server, 'flood', attacker, victim.name);
    },
    async check({ attack, victim, seconds }) {
      const acks = attack.answers.message_ack;
      assert.ok(acks >= 20 && acks <= allowed(60, 30, seconds), `${acks} accepted in ${seconds} s`);
      assert.ok(pushes(victim.client, 'message') <= allowed(60, 30, seconds));
      expectRetryTimes(attack);
    },
  },
  {
    name: 'presence queries from ten connections share one budget',
    ms: 5000,
    attack: {
      kind: 'websocket',
      connections: 10,
      batch: 4,
      everyMs: 50,
      frames: [
        JSON.stringify({ type: 'query_presence', user_ids: Array.from({ length: 100 }, (_, i) => `u${i}`) }),
      ],
    },
    async check({ attack, seconds }) {
      const answered = attack.answers.presence_snapshot; // each costs five
      assert.ok(answered >= 10 && answered <= allowed(100, 20, seconds), `${answered} answered`);
      expectRetryTimes(attack);
    },
  },
  {
    name: 'REST requests on fifty connections share one budget, and are answered later and later',
    ms: 5000,
    attack: { kind: 'rest', connections: 50, requests: [['GET', '/v1/me', undefined]] },
    async check({ attack, server, seconds }) {
      assert.ok(attack.answers[200] <= allowed(100, 50, seconds), `${attack.answers[200]} answered`);
      expectRetryTimes(attack);
      assert.ok(attack.sent <= 100 + 100 + 100 * (seconds + 2), `${attack.sent} requests got through`);
      assert.ok((await metric(server, 'limits_answers_held')) > 0);
    },
  },
  {
    name: 'opening an existing chat again and again costs requests, but no new chats',
    ms: 1500,
    attack: {
      kind: 'rest',
      connections: 2,
      requests: [
        ['POST', '/v1/chats', JSON.stringify({ direct_with: 'victim-5' })],
        ['POST', '/v1/chats', JSON.stringify({ chat_id: 'reopened', members: ['x'] })],
      ],
    },
    async check({ attack, server, attacker, seconds }) {
      assert.ok(attack.answers[200] > 60, `${attack.answers[200]} opened`);
      assert.ok(attack.answers[200] <= allowed(100, 50, seconds), `${attack.answers[200]} opened`);
      assert.equal(await metric(server, 'limits_refused_chats'), 0);
      let created = 0;
      const create = () => rest(server, 'POST', '/v1/chats', { user: attacker, body: { members: ['y'] } });
      await new Promise((resolve) => setTimeout(resolve, 1000)); /* for a few requests more */
      while (created < 30 && (await create()).status === 201) created += 1;
      assert.ok(created >= 16 && created <= 19, `${created} new chats`);
    },
  },
  {
    name: 'a user who is over one budget keeps the others',
    ms: 1500,
    attack: {
      kind: 'rest',
      connections: 2,
      requests: [['POST', '/v1/contact-requests', JSON.stringify({ to: 'victim-5' })]],
    },
    async check({ server, attacker }) {
      const refused = await rest(server, 'POST', '/v1/contact-requests', { user: attacker, body: { to: 'x' } });
      assert.equal(refused.status, 429);
      assert.ok(refused.body.error.retry_after_seconds > 30);
      assert.ok(Number(refused.headers.get('retry-after')) >= refused.body.error.retry_after_seconds);
      assert.equal((await rest(server, 'GET', '/v1/me', { user: attacker })).status, 200);
      const chat = await rest(server, 'POST', '/v1/chats', { user: attacker, body: { members: ['x'] } });
      assert.equal(chat.status, 201);
    },
  },
]);
