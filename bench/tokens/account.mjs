#!/usr/bin/env node
// Usage: account.mjs [--write] [PROGRAM]
// Token account: makes the calls of calls.json with the real program and a real container, and counts the characters of
// the tool list, of each request and of each result. Compares them with the table in docs/performance.md, which --write
// renews. Exit status: 0 if all bounds hold, 1 if one does not, 2 if it could not measure. Needs the image
// dockbridge-test:slim and Node.js 18 or newer, nothing from npm.
//
// The overhead of a result is what it contains beside the output. The account knows the output independently: it runs
// the command (or "outputOf", for the file tools) with docker exec right before the call, or has it as "output".

import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import { Captures } from '../../tests/clients/support/captures.mjs';
import { Container, docker } from '../../tests/clients/support/container.mjs';
import { StdioServer } from './stdio_server.mjs';

const maxMedianOverhead = 40;
const maxToolListBytes = 13_150; // 12,000, 1,000 for python and 150 for shells
/** Replies contain times and ids, so one may be this much longer than in the table, and all of them by this factor. */
const growthOfAResult = 40;
const growthOfAll = 1.02;
/** The longest prefix of a line of output that still counts as that line: a number, a path. */
const longestPrefix = 80;

const project = '/app/shop';
const beginMark = '<!-- token account: begin -->\n';
const endMark = '<!-- token account: end -->';

const fileHere = (name) => fileURLToPath(new URL(name, import.meta.url));
const pagePath = fileHere('../../docs/performance.md');

const textOf = ({ content }) =>
  content
    .filter(({ type }) => type === 'text')
    .map(({ text }) => text)
    .join('\n');

/** Characters of `reply` that belong to no line of `output`. Digits count as equal, because times and ids differ. */
function overheadOf(reply, output) {
  const comparable = (line) => line.trimEnd().replace(/\d/g, '0');
  const left = new Map();
  for (const line of output.split('\n').map(comparable)) {
    left.set(line, (left.get(line) ?? 0) + 1);
  }
  const prefixOf = (line) => {
    for (let prefix = 0; prefix <= Math.min(longestPrefix, line.length); ++prefix) {
      const rest = line.slice(prefix);
      if (left.get(rest) > 0 && (rest !== '' || prefix === 0)) {
        left.set(rest, left.get(rest) - 1);
        return prefix;
      }
    }
    return line.length + 1;
  };
  return reply
    .replace(/\n$/, '')
    .split('\n')
    .map(comparable)
    .reduce((sum, line) => sum + prefixOf(line), 0);
}

/** What the call is about, without dockbridge. */
async function outputOf(call, container) {
  if (call.output !== undefined) {
    return call.output;
  }
  const command = call.outputOf ?? call.arguments.command;
  return docker('exec', '--workdir', project, container.name, 'bash', '-c', `{ ${command}\n} 2>&1 || true`);
}

async function measure(program) {
  const container = await Container.start();
  const server = new StdioServer(program, ['--container-name', container.name]);
  try {
    await docker('exec', container.name, 'sh', '-c', await readFile(fileHere('project.sh'), 'utf8'));
    await server.initialize('token-account');
    const toolList = JSON.stringify(await server.request('tools/list', {})).length;
    const captures = new Captures();
    const rows = [];
    for (const call of JSON.parse(await readFile(fileHere('calls.json'), 'utf8'))) {
      const output = await outputOf(call, container);
      const params = { name: call.tool, arguments: { ...captures.fill(call.arguments), rationale: 'Next step' } };
      const reply = textOf(await server.call(params));
      captures.take(call.capture, reply);
      if (process.env.DOCKBRIDGE_SHOW_REPLIES !== undefined) {
        console.log(`== ${call.name}\n${reply}`);
      }
      rows.push({
        name: call.name,
        tool: call.tool,
        request: JSON.stringify(params).length,
        output: output.length,
        result: reply.length,
        overhead: overheadOf(reply, output),
      });
    }
    return { toolList, rows };
  } finally {
    server.stop();
    await container.remove();
  }
}

const sum = (rows, column) => rows.reduce((total, row) => total + row[column], 0);

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1] + sorted[Math.floor(middle)]) / 2;
}

const columns = ['name', 'tool', 'request', 'output', 'result', 'overhead'];

function tableOf({ toolList, rows }) {
  const numbers = (row) => columns.map((column) => row[column]).join(' | ');
  const last = {
    name: `**${rows.length} calls**`,
    tool: '',
    request: sum(rows, 'request'),
    output: sum(rows, 'output'),
    result: sum(rows, 'result'),
    overhead: `median ${median(rows.map(({ overhead }) => overhead))}`,
  };
  return [
    `Tool list: ${toolList} characters.`,
    '',
    '| call | tool | request | output | result | overhead |',
    '|---|---|--:|--:|--:|--:|',
    ...[...rows, last].map((row) => `| ${numbers(row)} |`),
    '',
  ].join('\n');
}

/** The tool list and the results in a page's table, by call. */
function documented(table) {
  const toolList = Number(/^Tool list: (\d+)/m.exec(table)?.[1]);
  const rows = [...table.matchAll(/^\| ([^|*]+) \| \w+ \| \d+ \| \d+ \| (\d+) \| \d+ \|$/gm)];
  return { toolList, results: new Map(rows.map(([, name, result]) => [name, Number(result)])) };
}

/** The bounds that do not hold. */
function complaints({ toolList, rows }, known) {
  const found = [];
  const expect = (what, value, bound) => {
    if (!(value <= bound)) {
      found.push(`${what}: ${value}, at most ${bound}`);
    }
  };
  expect('median overhead of a result', median(rows.map(({ overhead }) => overhead)), maxMedianOverhead);
  expect('tool list', toolList, Math.min(maxToolListBytes, Math.round(known.toolList * growthOfAll)));
  for (const { name, result } of rows) {
    expect(`result of '${name}'`, result, known.results.get(name) + growthOfAResult);
  }
  const before = [...known.results.values()].reduce((total, result) => total + result, 0);
  expect('all results', sum(rows, 'result'), Math.round(before * growthOfAll));
  return found;
}

async function main(args) {
  const write = args[0] === '--write';
  const program = args[write ? 1 : 0] ?? fileHere('../../build/release/dockbridge');
  const measured = await measure(program);
  const table = tableOf(measured);
  console.log(table);

  const page = await readFile(pagePath, 'utf8');
  const begin = page.indexOf(beginMark) + beginMark.length;
  const end = page.indexOf(endMark);
  if (write) {
    await writeFile(pagePath, page.slice(0, begin) + table + page.slice(end));
  }
  const found = complaints(measured, documented(write ? table : page.slice(begin, end)));
  if (found.length > 0) {
    console.error(found.join('\n'));
    console.error('If this is intended, renew the table in docs/performance.md: bench/tokens/account.mjs --write');
  }
  return found.length === 0 ? 0 : 1;
}

main(process.argv.slice(2)).then(
  (status) => (process.exitCode = status),
  (error) => {
    console.error(error);
    process.exitCode = 2;
  },
);
