// The agents that people use, with a scripted model: each makes the calls of calls.json, and the test checks what its
// model receives. An entry of calls.json has:
//   tool, arguments   the call; "{name}" stands for what an earlier call captured
//   capture           names, each with a pattern whose first group is remembered
//   once              facts that the texts contain exactly once, so nothing arrives in two representations
//   matches, begins   patterns for the texts, and for their first 300 characters
//   image             type of the one image that arrives as an image

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';

import { agents } from './support/agents.mjs';
import { Container, docker } from './support/container.mjs';
import { converse, textOf } from './support/scripted_conversation.mjs';

const calls = JSON.parse(readFileSync(new URL('calls.json', import.meta.url), 'utf8'));

/** Of all results together, images not counted, with what the client adds. */
const maxCharacters = 9000;
const beginning = 300;
const patience = 110_000;

/** A red square of 8 x 8 pixels. */
const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mP4z8CAFTEMLQkAKP8/wc53yE8AAAAASUVORK5CYII=';

const preparation = `
  printf '%s line of the notes\\n' first second last >/app/notes.txt
  echo ${picture} | base64 -d >/app/picture.png
  mkdir /app/many && cd /app/many && seq -f 'f%03g.c' 500 | xargs touch`;

function occurrences(text, part) {
  return text.split(part).length - 1;
}

function check(call, parts) {
  const text = textOf(parts);
  for (const fact of call.once ?? []) {
    assert.equal(occurrences(text, fact), 1, `'${fact}' exactly once in:\n${text}`);
  }
  for (const pattern of call.matches ?? []) {
    assert.match(text, new RegExp(pattern, 'im'));
  }
  for (const pattern of call.begins ?? []) {
    assert.match(text.slice(0, beginning), new RegExp(pattern, 'im'));
  }
  const images = parts.filter(({ type }) => type === 'image').map(({ mimeType }) => mimeType);
  assert.deepEqual(images, call.image === undefined ? [] : [call.image], text);
}

const size = ({ results }, index) => textOf(results[index] ?? []).length;

function sum(conversation) {
  return calls.reduce((total, _, index) => total + size(conversation, index), 0);
}

function table(conversations) {
  const row = (name, cells) => [name.padEnd(22), ...cells.map((cell) => String(cell).padStart(12))].join('');
  return [
    row(
      'characters',
      conversations.map(({ name }) => name),
    ),
    ...calls.map(({ name }, index) =>
      row(
        name,
        conversations.map((conversation) => size(conversation, index)),
      ),
    ),
    row('sum', conversations.map(sum)),
  ].join('\n');
}

async function prepareContainer() {
  const container = await Container.start();
  await docker('exec', container.name, 'sh', '-c', preparation);
  return container;
}

describe('agents', () => {
  const conversations = new Map();

  async function run(agent) {
    const container = await prepareContainer();
    try {
      const conversation = await converse(agent, container.name, calls, patience);
      conversations.set(agent.name, { name: agent.name, ...conversation });
    } finally {
      await container.remove();
    }
  }

  // Concurrently, because they mostly wait.
  before(() => Promise.all(agents.map(run)), { timeout: patience + 60_000 });
  after(() => console.log(table([...conversations.values()])));

  for (const { name } of agents) {
    describe(name, () => {
      it('makes all calls', () => {
        const { results, ended, output } = conversations.get(name);
        assert.equal(results.length, calls.length, `it ended with ${ended} and printed:\n${output}`);
        assert.equal(ended, 0, output);
      });

      it('has the usual tools without a search', () => {
        const { searched } = conversations.get(name);
        for (const tool of ['execute_command', 'check_process', 'file_read', 'file_edit']) {
          assert.ok(!searched.has(tool), tool);
        }
      });

      calls.forEach((call, index) =>
        it(`shows its model the result: ${call.name}`, () => {
          const parts = conversations.get(name).results[index];
          assert.ok(parts, 'no result');
          check(call, parts);
        }),
      );

      it(`costs at most ${maxCharacters} characters`, () => {
        const total = sum(conversations.get(name));
        assert.ok(total <= maxCharacters, `${total} characters`);
      });
    });
  }
});
