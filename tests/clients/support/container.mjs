import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

/** Runs the docker command; returns its output, or throws with its error output. */
export async function docker(...args) {
  const { stdout } = await promisify(execFile)('docker', args);
  return stdout.trim();
}

/** A name that no container has. */
export function uniqueName() {
  return `dockbridge-clients-${process.pid}-${randomBytes(4).toString('hex')}`;
}

/**
 * A container for some tests. The test that creates it removes it. run.sh removes remaining ones by their label, and a
 * container that run.sh could not remove ends by itself.
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
    // No cache of compiled modules: Python does not notice a change of the same size within the same second.
    const environment = 'PYTHONDONTWRITEBYTECODE=1';
    const options = ['--name', this.#name, '--label', label, '--env', environment, '--init', '--workdir', '/app'];
    return [...options, 'dockbridge-test:slim'];
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
