// What the tests share: a real daemon in a folder of its own, connections that are cut, programs of a few lines.
import { spawn, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const PATIENCE_MS = 60_000;

/** Wait until `isDone` is true, as long as that takes on a machine with much else to do. */
export async function until(isDone, what = String(isDone)) {
	const end = performance.now() + PATIENCE_MS;

	while (!(await isDone())) {
		if (performance.now() > end) {
			throw new Error(`waited in vain: ${what}`);
		}
		await sleep(2);
	}
}

/** A rationd on a Unix socket; it can be killed, and started again on the same file. */
export class Daemon {
	#more;
	#child;
	#log = '';

	constructor({ keeps = false, config = '', more = [] } = {}) {
		this.folder = mkdtempSync(path.join(os.tmpdir(), 'rationd-node-'));
		this.socket = path.join(this.folder, 's');
		this.url = `unix:${this.socket}`;
		const file = path.join(this.folder, 'rationd.conf');
		writeFileSync(file, config);
		const state = keeps ? ['--state', path.join(this.folder, 'state.db')] : ['--ephemeral'];
		this.#more = ['--config', file, '--listen', this.url, ...state, ...more];
	}

	static async start(options) {
		const daemon = new Daemon(options);

		await daemon.start();
		return daemon;
	}

	get log() {
		return this.#log;
	}

	async start() {
		const child = spawn(process.env.RATIOND, this.#more, { stdio: ['ignore', 'ignore', 'pipe'] });
		let said = '';

		this.#child = child;
		child.stderr.setEncoding('utf8').on('data', (text) => {
			said += text;
			this.#log += text;
		});
		await until(() => {
			if (child.exitCode !== null || child.signalCode !== null) {
				throw new Error(`the daemon has ended: ${said}`);
			}
			return said.includes('serving with');
		}, 'the daemon serves');
	}

	/** kill -9, or another signal; it has ended then. */
	async kill(signal = 'SIGKILL') {
		const child = this.#child;

		if (child !== undefined && child.exitCode === null && child.signalCode === null) {
			const ended = once(child, 'exit');
			child.kill(signal);
			await ended;
		}
	}

	/** rationctl with these arguments: what it printed. */
	ctl(...words) {
		return execFileSync(process.env.RATIONCTL, ['--socket', this.url, ...words], { encoding: 'utf8' });
	}

	/** The exact total at a path, or 0. */
	total(at) {
		return BigInt(JSON.parse(this.ctl('get', '--exact', '--json', at)).values[0].total);
	}

	async [Symbol.asyncDispose]() {
		await this.stop();
	}

	async stop() {
		await this.kill('SIGTERM');
		rmSync(this.folder, { recursive: true, force: true });
	}
}

/** Stands between clients and a daemon's socket, and cuts connections, as abruptly as a socket allows. */
export class Proxy {
	cuts = 0;
	/** Bytes of both directions together after which the next connections are cut; undefined: never. */
	cutAfter = undefined;
	#server = net.createServer((near) => this.#pass(near));
	#target;
	#open = new Set();

	constructor(daemon) {
		this.#target = daemon.socket;
		this.socket = `${daemon.folder}/p`;
		this.url = `unix:${this.socket}`;
	}

	static async start(daemon) {
		const proxy = new Proxy(daemon);

		proxy.#server.listen(proxy.socket);
		await once(proxy.#server, 'listening');
		return proxy;
	}

	#pass(near) {
		const far = net.connect(this.#target);
		let left = this.cutAfter?.() ?? Infinity;
		const cut = () => {
			this.#open.delete(cut);
			near.destroy();
			far.destroy();
		};
		const pass = (to) => (piece) => {
			left -= piece.length;
			if (left >= 0) {
				to.write(piece);
			} else {
				to.write(piece.subarray(0, Math.max(0, piece.length + left)));
				this.cuts += near.destroyed ? 0 : 1;
				cut();
			}
		};

		this.#open.add(cut);
		near.on('data', pass(far)).on('error', cut).on('close', cut);
		far.on('data', pass(near)).on('error', cut).on('close', cut);
	}

	/** Cut all connections that there are. */
	cut() {
		this.#open.forEach((cut) => cut());
	}

	stop() {
		this.#server.close();
		this.cut();
	}
}

/** Runs lines as a program of its own, with `client` in them; gives its exit status and what it wrote. */
export async function program(url, lines, { type = 'module', node = [] } = {}) {
	const start = type === 'module' ? `import { Client } from 'rationd';` : `const { Client } = require('rationd');`;
	const text = `${start}\nconst client = new Client();\n${lines}`;
	const child = spawn(process.execPath, [...node, `--input-type=${type}`, '-e', text], {
		env: { ...process.env, RATIOND_SOCKET: url, NODE_TEST_CONTEXT: undefined },
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	const result = { pid: child.pid, stdout: '', stderr: '' };

	child.stdout.setEncoding('utf8').on('data', (piece) => (result.stdout += piece));
	child.stderr.setEncoding('utf8').on('data', (piece) => (result.stderr += piece));
	[result.status, result.signal] = await once(child, 'close');
	return result;
}

/** A seeded source of random numbers; RATION_SEED gives the same run again. */
export function randomOf(seed = Number(process.env.RATION_SEED ?? Date.now() % 2 ** 31)) {
	let state = seed | 1;

	console.log(`RATION_SEED=${seed}`);
	return (below) => {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		return (state >>> 0) % below;
	};
}

export { sleep };
