/** Values that a scripted conversation takes from results, for the arguments of later calls. */
export class Captures {
  #values = {};

  /** `patterns` are names, each with a pattern whose first group is kept. */
  take(patterns, text) {
    for (const [name, pattern] of Object.entries(patterns ?? {})) {
      this.#values[name] = new RegExp(pattern).exec(text)?.[1];
    }
  }

  /** `args` with each "{name}" replaced by what was captured under that name. */
  fill(args) {
    return Object.fromEntries(Object.entries(args).map(([key, value]) => [key, this.#filled(value)]));
  }

  #filled(value) {
    const [, name] = /^\{(\w+)\}$/.exec(value) ?? [];
    return name === undefined ? value : (this.#values[name] ?? `nothing was captured as ${name}`);
  }
}
