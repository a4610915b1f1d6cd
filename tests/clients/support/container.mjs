import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

/** Runs the docker command; returns what it printed, or throws with what it complained about. */
export async function docker(...args) {
  const { stdout } = await promisify(execFile)('docker', args);
  return stdout.trim();
}

/** A name that no container has. */
export function uniqueName() {
  return `dockbridge-clients-${process.pid}-${randomBytes(4).toString('hex')}`;
}

/**
 * A container made for some tests. Whoever makes one removes it; run.sh removes what is left by its label, and a
 * container that even run.sh could not remove ends by itself.
 */
export class Container {
  #name = uniqueName();

  static async start() {
    const container = new Container();
    await docker('run', '--detach', '--rm', ...container.#options(), 'sleep', '900');
    return container;
  }

  static async createWithoutStarting() {
    const container = new Container();
    await docker('create', ...container.#options(), 'sleep', '900');
    return container;
  }

  get name() {
    return this.#name;
  }

  #options() {
    const label = `dockbridge-clients=${process.env.DOCKBRIDGE_CLIENTS_RUN ?? 'by-hand'}`;
    return ['--name', this.#name, '--label', label, '--init', '--workdir', '/app', 'dockbridge-test:slim'];
  }

  /** The command lines of all processes in it, seen from outside. */
  async processes() {
    const [, ...lines] = (await docker('top', this.#name, '-eo', 'pid,args')).split('\n');
    return lines.map((line) => line.trim().replace(/^\d+ +/, ''));
  }

  /** A field of `docker inspect`, as a value. */
  async inspect(field) {
    return JSON.parse(await docker('inspect', '--format', `{{json ${field}}}`, this.#name));
  }

  /** The paths that were added, changed or deleted since it was created. */
  async changedPaths() {
    return (await docker('diff', this.#name)).split('\n').filter((line) => line !== '');
  }

  async remove() {
    await docker('rm', '--force', '--volumes', this.#name);
  }
}
