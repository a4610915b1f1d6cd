import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { findProblems } from './include_graph.mjs';

/** The problems of a project with these rows and files, where a file is the list of what it includes. */
function problemsOf(rows, files) {
  const root = mkdtempSync(join(tmpdir(), 'include-graph-'));
  try {
    const table = Object.entries(rows).map(([folder, cell]) => `| \`${folder}\` | ${cell} |\n`);
    writeFileSync(
      join(root, 'ARCHITECTURE.md'),
      `# A\n\n## Dependencies\n\n| folder | may include |\n|---|---|\n${table.join('')}\n## Other\n\n| \`x\` | y |\n`,
    );
    for (const [file, targets] of Object.entries(files)) {
      mkdirSync(join(root, 'src', dirname(file)), { recursive: true });
      writeFileSync(join(root, 'src', file), targets.map((target) => `#include "${target}"\n`).join(''));
    }
    return findProblems(root);
  } finally {
    rmSync(root, { recursive: true });
  }
}

test('includes: what the table permits is accepted', () => {
  const rows = { base: 'nothing', part: '`base` (for `Thing`)', top: 'everything but `other`', other: '`base`' };
  const files = {
    'main.cpp': ['top/t.hpp', 'other/o.hpp'],
    'base/b.hpp': [],
    'part/p.cpp': ['base/b.hpp'],
    'part/deep/d.hpp': ['base/b.hpp'],
    'top/t.hpp': ['part/deep/d.hpp', 'base/b.hpp'],
    'other/o.hpp': ['base/b.hpp'],
  };
  assert.deepEqual(problemsOf(rows, files), []);
});

test('includes: a forbidden include is reported with its line', () => {
  const rows = { base: 'nothing', part: '`base`', top: 'everything but `part`' };
  const files = { 'base/b.hpp': [], 'part/deep/p.hpp': ['base/b.hpp'], 'top/t.cpp': ['base/b.hpp', 'part/deep/p.hpp'] };
  assert.deepEqual(problemsOf(rows, files), ['src/top/t.cpp:2: top may not include part (part/deep/p.hpp)']);
});

test('includes: the row of a sub-folder applies instead of the row above it', () => {
  const rows = { base: 'nothing', a: '`base`', 'a/one': '`a`', 'a/two': '`a`, `a/one`' };
  const files = {
    'base/b.hpp': [],
    'a/main.cpp': ['a/two/t.hpp'],
    'a/a.hpp': ['base/b.hpp'],
    'a/one/o.hpp': ['a/a.hpp'],
    'a/two/t.hpp': ['a/a.hpp', 'a/one/o.hpp'],
  };
  assert.deepEqual(problemsOf(rows, files), []);
  assert.deepEqual(problemsOf(rows, { ...files, 'a/one/o.cpp': ['base/b.hpp'] }), [
    'src/a/one/o.cpp:1: a/one may not include base (base/b.hpp)',
  ]);
  const withoutTwo = problemsOf({ ...rows, 'a/two': '`a`' }, files);
  assert.deepEqual(withoutTwo, ['src/a/two/t.hpp:2: a/two may not include a/one (a/one/o.hpp)']);
});

test('includes: a cycle between sub-folders is reported', () => {
  const files = { 'a/one/o.hpp': ['a/two/t.hpp'], 'a/two/t.hpp': [], 'a/two/u.hpp': ['a/one/o.hpp'] };
  assert.deepEqual(problemsOf({ a: 'nothing' }, files), [
    'a cycle between folders:\n  src/a/one/o.hpp:1 includes a/two/t.hpp\n  src/a/two/u.hpp:1 includes a/one/o.hpp',
  ]);
});

test('includes: table and folders name each other', () => {
  assert.deepEqual(problemsOf({ a: '`gone`', empty: 'nothing' }, { 'a/a.hpp': ['a/lost.hpp'], 'b/b.hpp': [] }), [
    'src/a/a.hpp:1: no such file in src/: a/lost.hpp',
    'ARCHITECTURE.md: the row of a names gone, which has no row',
    'ARCHITECTURE.md: no row for src/b',
    'ARCHITECTURE.md: the row of empty is about no file of src/',
  ]);
  assert.deepEqual(problemsOf({}, { 'main.cpp': [] }), ['ARCHITECTURE.md: no table under "## Dependencies"']);
});
