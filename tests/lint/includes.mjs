#!/usr/bin/env node
// Usage: includes.mjs
// Checks that the includes of src/ follow the table in ARCHITECTURE.md. Exit status: 0 if they do, 1 if not.

import { fileURLToPath } from 'node:url';

import { findProblems } from './include_graph.mjs';

/** Includes that close a cycle between folders and are to be removed, as 'file: included file'. */
const knownCycles = [
  'agent/record.cpp: agent/keeper/control.hpp',
  'agent/screen/service.cpp: agent/keeper/control.hpp',
  'mcp/transport/http/front.hpp: mcp/transport/message_memory.hpp',
];

const problems = findProblems(fileURLToPath(new URL('../..', import.meta.url)), knownCycles);
problems.forEach((problem) => console.error(problem));
process.exitCode = problems.length === 0 ? 0 : 1;
