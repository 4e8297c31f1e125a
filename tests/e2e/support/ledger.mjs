/** Changes the ledger's file from outside the server, as an operator with sqlite3 or an accident may do. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SOON_MS, within } from './client.mjs';

const execute = promisify(execFile);

const OUTPUT_BYTES_MAX = 256 * 1024 * 1024;

export const ledgerPath = (server) => join(server.dataDir, 'ledger.db');

/** Runs a statement; returns the output of the sqlite3 program. */
export async function sql(path, statement) {
  const { stdout } = await execute('sqlite3', ['-cmd', '.timeout 5000', path, statement], {
    maxBuffer: OUTPUT_BYTES_MAX,
  });
  return stdout.trim();
}

/** Holds the write lock of the database until `release()`. */
export async function lockDatabase(path) {
  const holder = spawn('sqlite3', [path], { stdio: ['pipe', 'pipe', 'inherit'] });
  holder.stdin.write('.timeout 5000\nBEGIN IMMEDIATE;\nSELECT \'locked\';\n');
  await within(SOON_MS, once(holder.stdout, 'data'), 'lock on the database');
  return {
    async release() {
      const exited = once(holder, 'exit');
      holder.stdin.end('ROLLBACK;\n.quit\n');
      await exited;
    },
  };
}

/** Limits the size of the files a process may write; `unlimited` ends the limit. */
export const limitFileSize = ({ pid }, bytes) =>
  execute('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
