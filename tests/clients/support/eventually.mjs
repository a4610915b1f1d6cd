import { AssertionError } from 'node:assert';
import { setTimeout as pause } from 'node:timers/promises';

/** Polls `condition` until it holds; fails with `what` if it does not within `patience` milliseconds. */
export async function eventually(what, condition, patience = 10_000) {
  const deadline = performance.now() + patience;
  while (!(await condition())) {
    if (performance.now() > deadline) {
      throw new AssertionError({ message: `not within ${patience} ms: ${what}` });
    }
    await pause(50);
  }
}
