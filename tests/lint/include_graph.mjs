// Compares the includes of src/ with the table "Dependencies" in ARCHITECTURE.md, and finds cycles between folders.
//
// A row is about the files of a folder and of its sub-folders. A sub-folder may have a row of its own, such as
// `agent/keeper`, which then applies instead. A name in the second column permits that folder with its sub-folders. It
// permits less in a row inside the named folder: in the row of `agent/keeper`, `agent` does not permit `agent/screen`
// if that has a row.
//
// A main.cpp wires its folder together: it may include every folder beneath its own, and is not part of a cycle.

import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const isInside = (folder, parent) => folder.startsWith(`${parent}/`);

/** The files beneath a directory, as paths relative to it. */
function listFiles(directory) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? listFiles(join(directory, entry.name)).map((file) => join(entry.name, file)) : [entry.name],
  );
}

/** The files of src/, and their includes of each other as { file, line, target }. An unknown target is a problem. */
function readIncludes(root, problems) {
  const source = join(root, 'src');
  const files = listFiles(source).filter((file) => /\.[ch]pp$/.test(file));
  const known = new Set(files);
  const includes = [];
  for (const file of files) {
    readFileSync(join(source, file), 'utf8')
      .split('\n')
      .forEach((text, index) => {
        const match = /^\s*#\s*include\s*(["<])([^">]+)[">]/.exec(text);
        if (match === null) {
          return;
        }
        const [, quote, target] = match;
        if (known.has(target)) {
          includes.push({ file, line: index + 1, target });
        } else if (quote === '"') {
          problems.push(`src/${file}:${index + 1}: no such file in src/: ${target}`);
        }
      });
  }
  return { files, includes };
}

/** The table as a map from a folder to the names in its row. `isExclusion`: the row permits all other folders. */
function readTable(root, problems) {
  const [, section] = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8').split(/^## Dependencies$/m);
  const rows = new Map();
  for (const [, folder, cell] of (section ?? '').split(/^## /m)[0].matchAll(/^\| `([^`]+)` \| (.+) \|$/gm)) {
    const names = [...cell.replace(/\([^)]*\)/g, '').matchAll(/`([^`]+)`/g)].map(([, name]) => name);
    rows.set(folder, { names, isExclusion: /^everything/.test(cell) });
  }
  if (rows.size === 0) {
    problems.push('ARCHITECTURE.md: no table under "## Dependencies"');
  }
  for (const [folder, { names }] of rows) {
    for (const name of names.filter((name) => !rows.has(name))) {
      problems.push(`ARCHITECTURE.md: the row of ${folder} names ${name}, which has no row`);
    }
  }
  return rows;
}

/** The folder whose row applies to this folder. */
function ruledBy(rows, folder) {
  for (let at = folder; at !== '.'; at = dirname(at)) {
    if (rows.has(at)) {
      return at;
    }
  }
  return undefined;
}

function isPermitted(rows, from, to) {
  const { names, isExclusion } = rows.get(from);
  const isNamed = names.some((name) => to === name || (isInside(to, name) && !isInside(from, name)));
  return from === to || isNamed !== isExclusion;
}

function checkTable(rows, { files, includes }, problems) {
  const folders = new Set(files.map(dirname));
  for (const folder of folders) {
    if (folder !== '.' && ruledBy(rows, folder) === undefined) {
      problems.push(`ARCHITECTURE.md: no row for src/${folder}`);
    }
  }
  for (const folder of rows.keys()) {
    if (![...folders].some((existing) => existing === folder || isInside(existing, folder))) {
      problems.push(`ARCHITECTURE.md: the row of ${folder} is about no file of src/`);
    }
  }
  for (const { file, line, target } of includes) {
    const folder = dirname(file);
    const isWiring = basename(file) === 'main.cpp' && (folder === '.' || isInside(dirname(target), folder));
    const [from, to] = [ruledBy(rows, folder), ruledBy(rows, dirname(target))];
    if (!isWiring && from !== undefined && to !== undefined && !isPermitted(rows, from, to)) {
      problems.push(`src/${file}:${line}: ${from} may not include ${to} (${target})`);
    }
  }
}

/** One cycle between the folders, as a list of includes, or undefined. */
function findCycle(includes) {
  const edges = new Map();
  for (const include of includes) {
    const [from, to] = [dirname(include.file), dirname(include.target)];
    if (from !== to) {
      edges.set(from, (edges.get(from) ?? new Map()).set(to, include));
    }
  }
  const finished = new Set();
  const path = [];
  function visit(folder) {
    const begin = path.findIndex(({ file }) => dirname(file) === folder);
    if (begin !== -1) {
      return path.slice(begin);
    }
    if (finished.has(folder)) {
      return undefined;
    }
    for (const [next, include] of edges.get(folder) ?? []) {
      path.push(include);
      const cycle = visit(next);
      if (cycle !== undefined) {
        return cycle;
      }
      path.pop();
    }
    finished.add(folder);
    return undefined;
  }
  for (const folder of edges.keys()) {
    const cycle = visit(folder);
    if (cycle !== undefined) {
      return cycle;
    }
  }
  return undefined;
}

function checkCycles({ includes }, problems) {
  const cycle = findCycle(includes.filter(({ file }) => basename(file) !== 'main.cpp'));
  if (cycle !== undefined) {
    const lines = cycle.map(({ file, line, target }) => `  src/${file}:${line} includes ${target}`);
    problems.push(['a cycle between folders:', ...lines].join('\n'));
  }
}

/** All problems of the project in `root`, as texts. */
export function findProblems(root) {
  const problems = [];
  const graph = readIncludes(root, problems);
  checkTable(readTable(root, problems), graph, problems);
  checkCycles(graph, problems);
  return problems;
}
