import { amountOf, isInt64, wholeOf, type Amount } from './amount.js';
import { RationError } from './error.js';
import type { Outbox } from './outbox.js';

/** @internal Why the daemon has no counter for a path, and until when it is not asked again. */
export interface Refusal {
	readonly code: number;
	readonly text: string;
	readonly until: number;
}

/**
 * A counter of the daemon's. What is added is kept here, in one number, until the client sends it in the background: an addition costs a few
 * nanoseconds and never waits. Get it once, from {@link Client.counter}, and keep it.
 */
export class Counter {
	/** Its path. */
	readonly path: string;

	/** @internal The number by which the daemon is told of it. */
	readonly _handle: number;
	/** @internal What was added and is not in a batch yet, as long as that is exact in a number; else NaN, so that additions go the slow way ... */
	_pending = 0;
	/** @internal ... and all of it is here. */
	_beyond = 0n;
	/** @internal It is in the outbox's list of those with something to send. */
	_dirty = false;
	/** @internal The sessions' number under which the daemon was told of it; 0: it has to be told. */
	_told = 0;
	/** @internal ... right before the batch of this number. */
	_toldIn = 0;
	/** @internal */
	_refusal: Refusal | undefined = undefined;
	/** @internal How often in a row the daemon did not know it right after it was told, and when that was last. */
	_strikes = 0;
	/** @internal */
	_struckAt = -Infinity;
	readonly #outbox: Outbox;

	/** @internal */
	constructor(outbox: Outbox, path: string, handle: number) {
		this.#outbox = outbox;
		this.path = path;
		this._handle = handle;
	}

	/**
	 * Add `n`, by default 1. Of a metric that only grows the daemon counts no negative sum; it is told by the client's event `loss`.
	 * Throws a {@link RationError} for what is no whole number, or takes what waits here out of the range of a signed 64-bit integer.
	 */
	incr(n: Amount = 1): void {
		if (typeof n === 'number' && Number.isSafeInteger(n)) {
			const sum = this._pending + n;

			if (sum <= Number.MAX_SAFE_INTEGER && sum >= Number.MIN_SAFE_INTEGER) {
				if (!this._dirty) {
					this.#outbox.touch(this);
				}
				this._pending = sum;
				return;
			}
		}
		this.#addSlowly(wholeOf(n, this.path));
	}

	/** The same as {@link Counter.incr}. */
	increment(n: Amount = 1): void {
		this.incr(n);
	}

	/** Take `n` off, by default 1: of a gauge. */
	decr(n: Amount = 1): void {
		this.incr(typeof n === 'number' || typeof n === 'bigint' ? -n : n);
	}

	/** The same as {@link Counter.decr}. */
	decrement(n: Amount = 1): void {
		this.decr(n);
	}

	#addSlowly(n: bigint): void {
		const sum = this._sum() + n;

		if (!isInt64(sum)) {
			throw new RationError('OUT_OF_RANGE', `${n} takes what waits to be sent, ${sum - n}, out of the range of 64 bits`, this.path);
		}
		if (!this._dirty) {
			this.#outbox.touch(this);
		}
		this.#set(sum);
	}

	#set(sum: bigint): void {
		const amount = amountOf(sum);

		this._pending = typeof amount === 'number' ? amount : NaN;
		this._beyond = sum;
	}

	/** @internal All that waits here. */
	_sum(): bigint {
		return Number.isNaN(this._pending) ? this._beyond : BigInt(this._pending);
	}

	/** @internal Take all that waits here away. */
	_take(): bigint {
		const sum = this._sum();

		this.#set(0n);
		this._dirty = false;
		return sum;
	}

	/** @internal What was taken was not counted. False: it does not fit any more. */
	_giveBack(n: bigint): boolean {
		const sum = this._sum() + n;

		if (!isInt64(sum)) {
			return false;
		}
		this.#set(sum);
		return true;
	}
}
