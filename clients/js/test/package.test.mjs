/** The package as an application gets it: its files, its types, and bundled for a browser. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access, copyFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { installPackedClient, requireDevelopment } from '../../../tests/e2e/support/client_package.mjs';

const run = promisify(execFile);
const esbuild = requireDevelopment('esbuild');
const TSC = join(requireDevelopment.resolve('typescript/package.json'), '../bin/tsc');
const TSC_OPTIONS = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext', '--jsx', 'react-jsx'];

let installed;

before(async () => {
  installed = await installPackedClient({
    packages: ['react', 'react-dom', '@types/react', 'csstype', 'scheduler'],
  });
  await writeFile(join(installed.folder, 'package.json'), '{"type":"module"}');
});
after(() => installed.remove());

const inPackage = (name) => join(installed.folder, 'node_modules/rollcall', name);

async function compile(name) {
  const outcome = run(process.execPath, [TSC, ...TSC_OPTIONS, name], { cwd: installed.folder });
  return outcome.then(
    () => '',
    ({ stdout }) => stdout,
  );
}

test('the tarball has every file that the package exports, its documents, and no tests', async () => {
  const { exports, types } = JSON.parse(await readFile(inPackage('package.json'), 'utf8'));
  const targets = Object.values(exports).flatMap((target) => Object.values(target?.types ? target : { target }));
  for (const target of [...targets, types, 'README.md', 'CHANGELOG.md']) await access(inPackage(target));
  const files = await readdir(inPackage('.'));
  assert.deepEqual(files.filter((name) => /test|lock|node_modules/.test(name)), []);
});

test('a program that uses the whole client compiles under strict TypeScript', async () => {
  await copyFile(new URL('sample.tsx', import.meta.url), join(installed.folder, 'sample.tsx'));
  assert.equal(await compile('sample.tsx'), '');
});

test('a program that uses the client wrongly does not compile', async () => {
  await writeFile(
    join(installed.folder, 'wrong.ts'),
    `import { Rollcall } from 'rollcall';
     const client = new Rollcall({ token: 't' });
     client.on('presence', ({ nickname }) => nickname);
     client.api.createGroup({ members: 'bob' });
     client.sendMessage('team');
     new Rollcall({});`,
  );
  const problems = await compile('wrong.ts');
  for (const line of [3, 4, 5, 6]) assert.match(problems, new RegExp(`wrong\\.ts.${line}[,:]`), problems);
});

test('a bundler makes one script of it that runs without modules', async () => {
  await writeFile(
    join(installed.folder, 'entry.js'),
    `import { Rollcall } from 'rollcall';
     globalThis.made = new Rollcall({ url: 'wss://server.test', token: 't' });`,
  );
  const outfile = join(installed.folder, 'bundle.cjs');
  const { warnings, metafile } = await esbuild.build({
    absWorkingDir: installed.folder,
    entryPoints: ['entry.js'],
    bundle: true,
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    metafile: true,
    outfile,
  });
  assert.deepEqual(warnings, []);
  const inputs = Object.keys(metafile.inputs).map((path) => path.split('/').at(-1));
  assert.deepEqual(inputs.filter((name) => /^(react|call)/.test(name)), [], 'only what is used is bundled');
  const script = `globalThis.WebSocket = class {}; require(${JSON.stringify(outfile)}); console.log(made.state)`;
  const { stdout } = await run(process.execPath, ['-e', script]);
  assert.equal(stdout.trim(), 'DISCONNECTED');
});
