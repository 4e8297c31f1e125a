/** The package as an application gets it: its files, its types, and bundled for a browser. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access, copyFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
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

/** The names that a file of types declares: exports, and the methods of its classes. */
async function declared(name) {
  const text = (await readFile(inPackage(`${name}.d.ts`), 'utf8')).replaceAll(/\/\*[^]*?\*\//g, '');
  const classes = [...text.matchAll(/^export class (\w+)[^]*?^\}/gm)].map(([body, className]) => ({
    className,
    methods: [...body.matchAll(/^ {2}(static )?(\w+)(?:<[^>]*>)?\(/gm)]
      .filter(([, , method]) => method !== 'constructor')
      .map(([, isStatic, method]) => ({ isStatic: isStatic !== undefined, method })),
  }));
  const exported = [...text.matchAll(/^export (type|interface|class|function) (\w+)/gm)].map(([, kind, each]) => ({ kind, name: each }));
  return { classes, exported };
}

test('the samples use every function and type that the package exports', async () => {
  await copyFile(new URL('sample_rest.ts', import.meta.url), join(installed.folder, 'sample_rest.ts'));
  assert.equal(await compile('sample_rest.ts'), '');
  const samples = await Promise.all(['sample.tsx', 'sample_rest.ts'].map((name) => readFile(new URL(name, import.meta.url), 'utf8')));
  const words = new Set(samples.join(' ').match(/\w+/g));
  for (const name of ['rollcall', 'call', 'react']) {
    const { classes, exported } = await declared(name);
    const names = [...exported.map((each) => each.name), ...classes.flatMap(({ methods }) => methods.map(({ method }) => method))];
    assert.ok(names.length >= 8, name);
    assert.deepEqual(names.filter((each) => !words.has(each)), [], name);
  }
});

test('what the types declare exists, in Node as an ES module', async () => {
  for (const name of ['rollcall', 'call', 'react']) {
    const { classes, exported } = await declared(name);
    const module = await import(pathToFileURL(inPackage(`${name}.js`)).href);
    for (const { kind, name: each } of exported)
      if (kind === 'class' || kind === 'function') assert.equal(typeof module[each], 'function', each);
    for (const { className, methods } of classes)
      for (const { isStatic, method } of methods)
        assert.equal(typeof (isStatic ? module[className] : module[className].prototype)[method], 'function', `${className}.${method}`);
  }
});

test('the page of the server uses the client for everything: it opens no connection of its own', async () => {
  const folder = new URL('../../../console/', import.meta.url);
  const scripts = (await readdir(folder)).filter((name) => name.endsWith('.js'));
  assert.ok(scripts.length > 20);
  for (const name of scripts) {
    const text = await readFile(new URL(name, folder), 'utf8');
    assert.doesNotMatch(text, /\bfetch\(|XMLHttpRequest|new WebSocket|EventSource|sendBeacon|\/v1\//, name);
  }
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

test('a bundler takes calls and React hooks too', async () => {
  await writeFile(
    join(installed.folder, 'all.js'),
    `import { Calls } from 'rollcall/call';
     import { useChat } from 'rollcall/react';
     globalThis.made = [Calls.name, useChat.name];`,
  );
  const outfile = join(installed.folder, 'all.cjs');
  const { warnings } = await esbuild.build({
    absWorkingDir: installed.folder, entryPoints: ['all.js'], bundle: true, format: 'iife', platform: 'browser', target: 'es2022', outfile,
  });
  assert.deepEqual(warnings, []);
  const { stdout } = await run(process.execPath, ['-e', `require(${JSON.stringify(outfile)}); console.log(made.length)`]);
  assert.equal(stdout.trim(), '2');
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
