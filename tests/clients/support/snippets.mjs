// The configuration of clients in the README, so that tests use it as written.

import { readFile } from 'node:fs/promises';

const readme = new URL('../../../README.md', import.meta.url);
const runPath = '/path/to/dockbridge/run.sh';

/** The indented line of the README that begins with `beginning`, with `program` in place of run.sh. */
async function snippet(beginning, program) {
  const lines = (await readFile(readme, 'utf8')).split('\n').map((line) => line.trim());
  const found = lines.filter((line) => line.startsWith(beginning) && line.includes(runPath));
  if (found.length !== 1) {
    throw new Error(`README.md has ${found.length} lines that begin with '${beginning}' and name ${runPath}`);
  }
  return found[0].replace(runPath, program);
}

/** The arguments of a command. */
export async function commandSnippet(beginning, program) {
  const [, ...args] = (await snippet(beginning, program)).split(' ');
  return args;
}

/** A whole JSON file. */
export function jsonSnippet(beginning, program) {
  return snippet(beginning, program);
}
