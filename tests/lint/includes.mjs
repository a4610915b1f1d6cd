#!/usr/bin/env node
// Usage: includes.mjs
// Checks that the includes of src/ follow the table in ARCHITECTURE.md. Exit status: 0 if they do, 1 if not.

import { fileURLToPath } from 'node:url';

import { findProblems } from './include_graph.mjs';

const problems = findProblems(fileURLToPath(new URL('../..', import.meta.url)));
problems.forEach((problem) => console.error(problem));
process.exitCode = problems.length === 0 ? 0 : 1;
