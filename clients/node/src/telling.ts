import { now } from './clock.js';
import type { Counter } from './counter.js';
import { codes } from './error.js';
import type { Welcome } from './generated/ration_pb.js';
import type { Answer, RequestInit } from './wire.js';

const REFUSED_MS = 1000; // how long a refused path is not asked for again
const MAX_PATHS = 1000; // in one Intern
const PATH_BYTES = 520; // of one path in it, at the most

/** @internal What the daemon knows of the counters: the paths behind their handles, told right before the first batch that needs them. */
export class Telling {
	limits: Welcome['limits'];
	#session = 1; // which one it is, of those that had handles: what Counter._told says
	/** What was told and is not answered. */
	#asked = new Map<number, readonly Counter[]>();

	get isDue(): boolean {
		return this.#asked.size > 0;
	}

	/** Another session: no handle is known. */
	renew(): void {
		this.#session++;
	}

	/** The connection broke: what was not answered has to be told again. */
	broken(): void {
		for (const counters of this.#asked.values()) {
			counters.forEach((counter) => (counter._told = 0));
		}
		this.#asked.clear();
	}

	/** Have the daemon know the counters of the batch with this number. */
	tell(counters: readonly Counter[], number: number, put: (request: RequestInit) => number): void {
		const { maxItems = 1, maxFrame = 0 } = this.limits ?? {};
		const most = Math.max(1, Math.min(MAX_PATHS, maxItems, Math.floor(maxFrame / PATH_BYTES)));
		const unknown = counters.filter((counter) => counter._told !== this.#session).sort((a, b) => a._handle - b._handle);

		for (let from = 0; from < unknown.length; ) {
			const first = (unknown[from] as Counter)._handle;
			let to = from + 1;

			while (to < unknown.length && to - from < most && unknown[to]?._handle === first + to - from) {
				to++;
			}
			this.#tellRun(unknown.slice(from, to), number, put);
			from = to;
		}
	}

	#tellRun(run: readonly Counter[], number: number, put: (request: RequestInit) => number): void {
		const maxHandles = this.limits?.maxHandles ?? 0;
		const fit = run.filter((counter) => counter._handle < maxHandles);

		for (const counter of run) {
			counter._told = this.#session;
			counter._toldIn = number;
		}
		run.slice(fit.length).forEach((counter) => refuse(counter, codes.RESOURCE_EXHAUSTED, `the daemon takes ${maxHandles} counters of a client`));
		if (fit[0] !== undefined) {
			const value = { firstHandle: fit[0]._handle, paths: fit.map((counter) => counter.path) };
			this.#asked.set(put({ body: { case: 'intern', value } }), fit);
		}
	}

	/** False: this is no answer to what was told. */
	take(id: number, answer: Answer): boolean {
		const counters = this.#asked.get(id);

		if (counters === undefined) {
			return false;
		}
		this.#asked.delete(id);
		if (answer.case === 'interned') {
			for (const { index, code, text } of answer.value.errors) {
				const counter = counters[index];
				if (counter !== undefined) {
					refuse(counter, code, text);
				}
			}
		} else if (answer.case === 'error') {
			const { code, text } = answer.value;
			counters.forEach((counter) => refuse(counter, code, text));
		}
		return true;
	}
}

function refuse(counter: Counter, code: number, text: string): void {
	counter._told = 0;
	counter._refusal = { code, text, until: now() + REFUSED_MS };
}
