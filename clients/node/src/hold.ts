import type { Client } from './client.js';
import type { Binding } from './types.js';

/**
 * A charge on gauges that is given back when this is released or disposed of, or when the program has ended. Made by {@link Client.hold}.
 */
export class Hold {
	/** What is held: path and amount. */
	readonly items: readonly (readonly [path: string, amount: bigint])[];
	/** The limits that had something to say: those that are above their `high` now. */
	readonly bindings: readonly Binding[];
	readonly #uncharge: () => Promise<void>;
	#isOver = false;

	/** @internal */
	constructor(items: readonly (readonly [string, bigint])[], bindings: readonly Binding[], uncharge: () => Promise<void>) {
		this.items = items;
		this.bindings = bindings;
		this.#uncharge = uncharge;
	}

	/** It is still charged. Not so after a release, or if the daemon has forgotten this client ({@link Client}, event `reset`). */
	get isHeld(): boolean {
		return !this.#isOver;
	}

	/**
	 * Give it back, once. Waits until the daemon has done so, but not for a daemon that is away: then it is given back as soon as it is there
	 * again.
	 */
	async release(): Promise<void> {
		if (!this.#isOver) {
			this.#isOver = true;
			await this.#uncharge();
		}
	}

	/** The same as {@link Hold.release}: `await using hold = await client.hold('jobs/acme')`. */
	async [Symbol.asyncDispose](): Promise<void> {
		await this.release();
	}

	/** @internal */
	_lost(): void {
		this.#isOver = true;
	}
}
