import { Counter } from './counter.js';
import { codes, RationError } from './error.js';
import { now } from './clock.js';
import { checkPath } from './path.js';

/** @internal Growth under a number. It is in exactly one place: in its counter, or in a batch. */
export interface Batch {
	readonly number: number;
	counters: Counter[];
	deltas: bigint[];
	/** The daemon of the last Welcome has applied it. */
	applied: boolean;
}

/** @internal One entry of a batch that was not counted. */
export interface EntryError {
	readonly index: number;
	readonly code: number;
	readonly text: string;
}

/** @internal What one process leaves to another, as JSON can hold it. */
export interface Bequest {
	readonly batches: readonly { number: number; applied: boolean; entries: [path: string, delta: string][] }[];
	readonly growth: readonly [path: string, delta: string][];
	readonly nextNumber: number;
}

/** @internal What a Welcome says about batches. */
export interface BatchesKnown {
	readonly last: number;
	readonly durable: number;
	readonly keeps: boolean;
	readonly resumed: boolean;
	readonly restored: boolean;
	/** It comes from the daemon that the Welcome before came from. */
	readonly sameDaemon: boolean;
	/** So many entries it takes in one batch. */
	readonly maxEntries: number;
}

/** @internal */
export type Lose = (path: string, code: number, amount: bigint, text: string) => void;

interface Waiter {
	/** Everything that was touched up to here has to be in a batch, ... */
	mark: number;
	/** ... up to this one, once it is, and that be applied. */
	batch: number | undefined;
	readonly done: () => void;
}

const BATCH_BYTES = 96; // what a batch and an entry in it take, about
const ENTRY_BYTES = 32;
const MAX_ENTRIES = 1000;
const MAX_STRIKES = 3;
const STRIKES_MS = 1000;

/** @internal All counters, what they have grown by, and the batches of it that the daemon may not have for good yet. */
export class Outbox {
	readonly counters: Counter[] = [];
	/** Oldest first, with numbers that have no gaps; those up to #toSend are under way or applied. */
	readonly kept: Batch[] = [];
	nextNumber = 1;
	closed = false;
	readonly #byPath = new Map<string, Counter>();
	#dirty: Counter[] = [];
	#touched = 0; // so many were ever put into #dirty ...
	#taken = 0; // ... and so many taken out
	#toSend = 0;
	#bytes = 0;
	#keeps = false;
	#maxEntries = MAX_ENTRIES;
	#applied = 0;
	#waiters: Waiter[] = [];

	constructor(
		readonly maxBytes: number,
		readonly maxCounters: number,
		/** Growth has begun to wait. */
		readonly wake: () => void,
		readonly lose: Lose,
	) {}

	/** The counter at this path, the same one each time. */
	counter(path: string): Counter {
		let counter = this.#byPath.get(path);

		if (counter === undefined) {
			checkPath(path);
			if (this.counters.length >= this.maxCounters) {
				throw new RationError('RESOURCE_EXHAUSTED', `this client has ${this.maxCounters} counters, its maxCounters`, path);
			}
			counter = new Counter(this, path, this.counters.length);
			this.counters.push(counter);
			this.#byPath.set(path, counter);
		}
		return counter;
	}

	/** The first growth of a counter since it was taken. */
	touch(counter: Counter): void {
		if (this.closed) {
			throw new RationError('FAILED_PRECONDITION', 'this client is closed', counter.path);
		}
		this.#mark(counter);
	}

	/** Growth that the library itself has come to know of, also of a client that is being closed. */
	add(counter: Counter, growth: bigint): void {
		if (counter._giveBack(growth)) {
			this.#mark(counter);
		} else {
			this.lose(counter.path, codes.OUT_OF_RANGE, growth, 'with what waits to be sent it is beyond 64 bits');
		}
	}

	#mark(counter: Counter): void {
		if (!counter._dirty) {
			counter._dirty = true;
			this.#touched++;
			if (this.#dirty.push(counter) === 1) {
				this.wake();
			}
		}
	}

	/** Something is not yet applied. */
	get isDue(): boolean {
		return this.#dirty.length > 0 || this.nextNumber - 1 > this.#applied;
	}

	/** Something is not yet kept for good by the daemon. */
	get isKept(): boolean {
		return this.#dirty.length > 0 || this.kept.length > 0;
	}

	/** Much is kept. */
	get isHalfFull(): boolean {
		return this.#bytes >= this.maxBytes / 2;
	}

	/** Something was sent, and not answered. */
	get isUnanswered(): boolean {
		return this.#toSend > 0 && this.kept[this.#toSend - 1]?.applied === false;
	}

	/** How much, in magnitude, is not applied, and of how many counters. */
	undelivered(): { amount: bigint; counters: number } {
		const sums = new Map<Counter, bigint>();
		let amount = 0n;
		const add = (counter: Counter, n: bigint): void => {
			sums.set(counter, n);
			amount += n < 0n ? -n : n;
		};

		for (const batch of this.kept) {
			if (!batch.applied) {
				batch.counters.forEach((counter, i) => add(counter, batch.deltas[i] as bigint));
			}
		}
		this.#dirty.forEach((counter) => add(counter, counter._sum()));
		return { amount, counters: sums.size };
	}

	/** All that is not kept for good by the daemon, for another process to go on with. */
	bequeath(): Bequest {
		const entriesOf = (batch: Batch): [string, string][] => batch.counters.map((counter, i) => [counter.path, String(batch.deltas[i])]);

		return {
			batches: this.kept.map((batch) => ({ number: batch.number, applied: batch.applied, entries: entriesOf(batch) })),
			growth: this.#dirty.map((counter) => [counter.path, String(counter._sum())]),
			nextNumber: this.nextNumber,
		};
	}

	/** Go on where another process has ended. */
	inherit({ batches, growth, nextNumber }: Bequest): void {
		this.nextNumber = nextNumber;
		for (const { number, applied, entries } of batches) {
			const batch = { number, applied, counters: entries.map(([path]) => this.counter(path)), deltas: entries.map(([, n]) => BigInt(n)) };
			this.kept.push(batch);
			this.#bytes += sizeOf(batch);
		}
		this.#applied = (this.kept.find((batch) => !batch.applied)?.number ?? nextNumber) - 1;
		growth.forEach(([path, n]) => this.counter(path).incr(BigInt(n)));
	}

	/** Give up all that is not applied; it is reported as lost. */
	giveUp(text: string): void {
		const sums = new Map<Counter, bigint>();
		const add = (counter: Counter, n: bigint): void => void sums.set(counter, (sums.get(counter) ?? 0n) + n);

		for (const batch of this.kept.splice(0)) {
			if (!batch.applied) {
				batch.counters.forEach((counter, i) => add(counter, batch.deltas[i] as bigint));
			}
		}
		this.#bytes = this.#toSend = 0;
		this.#applied = this.nextNumber - 1;
		this.#dirty.splice(0).forEach((counter) => add(counter, counter._take()));
		this.#taken = this.#touched;
		sums.forEach((sum, counter) => this.lose(counter.path, codes.UNAVAILABLE, sum, text));
		this.#settle();
	}

	/** `done` is called when all that was added before is applied, or reported as lost. */
	whenApplied(done: () => void): void {
		this.#waiters.push({ mark: this.#touched, batch: undefined, done });
		this.#settle();
	}

	#settle(): void {
		if (this.#waiters.length === 0) {
			return;
		}
		const done: Waiter[] = [];
		this.#waiters = this.#waiters.filter((waiter) => {
			if (waiter.batch === undefined && this.#taken >= waiter.mark) {
				waiter.batch = this.nextNumber - 1;
			}
			const waits = waiter.batch === undefined || waiter.batch > this.#applied;
			if (!waits) {
				done.push(waiter);
			}
			return waits;
		});
		done.forEach((waiter) => waiter.done());
	}

	// ---- sending ----

	/** The next batch that this connection has to send: one that was kept, or a new one while there is room. */
	next(): Batch | undefined {
		const batch = this.kept[this.#toSend] ?? this.#cut();

		if (batch !== undefined) {
			this.#toSend++;
		}
		return batch;
	}

	#cut(): Batch | undefined {
		while (this.#bytes < this.maxBytes && this.#dirty.length > 0) {
			const batch: Batch = { number: this.nextNumber, counters: [], deltas: [], applied: false };

			for (const counter of this.#dirty.splice(0, this.#maxEntries)) {
				this.#put(batch, counter);
			}
			if (batch.counters.length > 0) {
				this.nextNumber++;
				this.kept.push(batch);
				this.#bytes += sizeOf(batch);
				this.#settle();
				return batch;
			}
		}
		this.#settle();
		return undefined;
	}

	#put(batch: Batch, counter: Counter): void {
		const sum = counter._take();
		const refusal = counter._refusal;

		this.#taken++;
		if (sum === 0n) {
			return;
		}
		if (refusal !== undefined && refusal.until > now()) {
			this.lose(counter.path, refusal.code, sum, refusal.text);
			return;
		}
		batch.counters.push(counter);
		batch.deltas.push(sum);
	}

	// ---- answers ----

	/** False: an acknowledgement of what was not sent. */
	takeApplied(number: number, errors: readonly EntryError[]): boolean {
		const at = number - (this.kept[0]?.number ?? this.nextNumber);
		const batch = this.kept[at];

		if (batch === undefined || at >= this.#toSend || number !== this.#applied + 1) {
			return false;
		}
		batch.applied = true;
		this.#applied = number;
		this.#takeErrors(batch, errors);
		if (!this.#keeps) {
			this.drop(number);
		}
		this.#settle();
		return true;
	}

	/**
	 * What was refused is taken out of the batch: should it have to be sent to another daemon, then without that, since it has been reported
	 * as lost, or is on its way in a later batch.
	 */
	#takeErrors(batch: Batch, errors: readonly EntryError[]): void {
		const refused = new Set<number>();

		for (const error of errors) {
			const [counter, delta] = [batch.counters[error.index], batch.deltas[error.index]];
			if (counter !== undefined && delta !== undefined && !refused.has(error.index)) {
				refused.add(error.index);
				this.#takeError(batch, counter, delta, error);
			}
		}
		if (refused.size > 0) {
			this.#bytes -= sizeOf(batch);
			batch.counters = batch.counters.filter((_, i) => !refused.has(i));
			batch.deltas = batch.deltas.filter((_, i) => !refused.has(i));
			this.#bytes += sizeOf(batch);
		}
	}

	#takeError(batch: Batch, counter: Counter, delta: bigint, error: EntryError): void {
		const refusal = counter._refusal;

		// The daemon says no more than that there is no counter: the reason came with the Interned.
		if (refusal !== undefined && refusal.until > now()) {
			this.lose(counter.path, refusal.code, delta, refusal.text);
		} else if (error.code !== codes.NOT_FOUND || !this.#tellAgain(counter, batch.number) || !this.#giveBack(batch, counter, delta)) {
			this.lose(counter.path, error.code, delta, error.text);
		}
	}

	/** What was in a batch is to be in another one. False: its counter has no room for it any more. */
	#giveBack(batch: Batch, counter: Counter, delta: bigint): boolean {
		if (!counter._giveBack(delta)) {
			return false;
		}
		this.#mark(counter);
		// Whoever waits for this growth waits for the batch that it will be in.
		for (const waiter of this.#waiters) {
			if (waiter.batch !== undefined && waiter.batch >= batch.number) {
				waiter.mark = this.#touched;
				waiter.batch = undefined;
			}
		}
		return true;
	}

	/** Its number goes on, for nothing. */
	#empty(batch: Batch): void {
		this.#bytes -= sizeOf(batch);
		batch.counters = [];
		batch.deltas = [];
		this.#bytes += sizeOf(batch);
	}

	/** Another daemon may take fewer entries at once: what is too long for it is cut anew. */
	#fit(batch: Batch): void {
		batch.counters.forEach((counter, i) => {
			const delta = batch.deltas[i] as bigint;

			if (!this.#giveBack(batch, counter, delta)) {
				this.lose(counter.path, codes.OUT_OF_RANGE, delta, 'with what was added since it is beyond 64 bits');
			}
		});
		this.#empty(batch);
	}

	/** The counter was removed: its path has to be told again. False: that was done several times within a second. */
	#tellAgain(counter: Counter, number: number): boolean {
		// Batches that were under way before the path was told again meet the same answer, and are no strike.
		if (counter._told !== 0 && number >= counter._toldIn) {
			counter._told = 0;
			counter._strikes = now() - counter._struckAt > STRIKES_MS ? 1 : counter._strikes + 1;
			counter._struckAt = now();
		}
		return counter._strikes < MAX_STRIKES;
	}

	/** The daemon has all up to this number for good. */
	drop(number: number): void {
		let n = 0;

		for (; n < this.kept.length && (this.kept[n] as Batch).number <= number; n++) {
			this.#bytes -= sizeOf(this.kept[n] as Batch);
		}
		if (n > 0) {
			this.kept.splice(0, n);
			this.#toSend = Math.max(0, this.#toSend - n);
		}
	}

	/** The daemon said what it knows. False: this can't be the session's. */
	welcome(known: BatchesKnown): boolean {
		if (known.last >= this.nextNumber) {
			return false;
		}
		this.#keeps = known.keeps;
		this.#maxEntries = Math.min(MAX_ENTRIES, known.maxEntries);
		this.drop(known.keeps && known.resumed ? known.durable : known.last);
		for (const batch of this.kept) {
			const isThere = batch.number <= known.last;

			// The daemon that applied it has forgotten under which number.
			if (!isThere && batch.applied && known.sameDaemon && !known.restored) {
				this.#empty(batch);
			} else if (!isThere && batch.counters.length > known.maxEntries) {
				this.#fit(batch);
			}
			batch.applied = isThere;
		}
		this.#toSend = this.kept.filter((batch) => batch.applied).length;
		this.#applied = (this.kept[this.#toSend]?.number ?? this.nextNumber) - 1;
		this.#settle();
		return true;
	}

	/** A batch that the daemon keeps ending the connection for: its growth is lost, its number stays. */
	loseOldest(code: number, text: string): void {
		const batch = this.kept.find((one) => !one.applied);

		if (batch !== undefined) {
			batch.counters.forEach((counter, i) => this.lose(counter.path, code, batch.deltas[i] as bigint, text));
			this.#empty(batch);
		}
	}
}

function sizeOf(batch: Batch): number {
	return BATCH_BYTES + ENTRY_BYTES * batch.counters.length;
}
