import { randomBytes, randomInt } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import type { Address } from './address.js';
import { cancel, later, now, type Timer } from './clock.js';
import { codeName, codes, RationError } from './error.js';
import type { Reply, Welcome } from './generated/ration_pb.js';
import type { Operations } from './operations.js';
import type { Outbox } from './outbox.js';
import { Telling } from './telling.js';
import { FrameReader, frameOf, type Answer, type Body, type RequestInit } from './wire.js';

const VERSION = 1;
const AGENT = 'rationd-node/0.1.0';
const CONNECT_MS = 5000; // for the connect, and again for the Welcome
const BACKOFF_MIN_MS = 50;
const BACKOFF_MAX_MS = 2000;
const SILENCE_MS = 5000; // with an answer due, or over TCP: then a Ping
const ANSWER_MS = 15000; // of silence in all: then the connection is taken for dead
const COMMIT_RETRY_MS = 1000; // after the daemon could not write its file
const MIN_FRAME = 1024; // less than this is no limit that one can work with
const FRAME_EXTRA = 64; // what an Add has beside its entries, at the most, ...
const ENTRY_BYTES = 16; // ... and what one of those takes
const MAX_FAULTS = 5; // connections that the daemon ends because of one batch

/** @internal A question without a number: asked again on the next connection if this one breaks. */
export interface Question {
	readonly body: Body;
	/** An answer; true: it was the last one. */
	readonly take: (answer: Answer) => boolean;
	/** The connection broke; what it has answered so far is answered again. */
	readonly again: () => void;
	readonly fail: (error: RationError) => void;
}

/** @internal What the client is told of. */
export interface LinkEvents {
	/** The daemon speaks to us. `lost`: it knows nothing of the session that there was. */
	up(lost: boolean): void;
	down(error: RationError): void;
	/** There is nobody at the address. */
	unreachable(error: RationError): void;
}

/** @internal The session with the daemon: one connection, made anew when it breaks, on which everything goes. */
export class Link {
	state: 'idle' | 'waiting' | 'connecting' | 'greeting' | 'up' = 'idle';
	/** Why there is no connection. */
	reason = 'not connected yet';
	keeps = false;
	/** The 16 bytes that it is known by. */
	session: Buffer = randomBytes(16);
	readonly #telling = new Telling();
	#isEnded = false;
	#known = false; // some daemon has welcomed a session of ours
	#begun = false; // and this one
	#incarnation = '';
	#socket: Socket | undefined;
	#reader = new FrameReader();
	#timer: Timer | undefined;
	#backoff = 0;
	#triedAt = -Infinity;
	#heardAt = 0;
	#pingId = 0;
	#commitId = 0; // of a Flush that is to have what is kept over with
	#commitAt = -Infinity; // not before this
	#faults = 0;
	#faultBatch = 0;
	#nextId = 1;
	#helloId = 0;
	#out: Uint8Array[] = [];
	#flushing = false;
	#adds = new Set<number>(); // requests that were not answered
	#asked = new Map<number, Question>();
	#questions: Question[] = [];
	#awaited = false;

	constructor(
		readonly address: Address,
		readonly lifetimeMs: number,
		readonly outbox: Outbox,
		readonly operations: Operations,
		readonly events: LinkEvents,
	) {}

	// ---- what the client asks of it ----

	/** Connect, if there is no connection: at once, or when the pause after a failure is over. */
	start(): void {
		if (this.state === 'idle' && !this.#isEnded) {
			this.#dial();
		}
	}

	/** As start, but don't wait out a long pause: somebody waits. */
	hurry(): void {
		if (this.state === 'waiting' && this.#backoff > BACKOFF_MIN_MS) {
			this.#wait(Math.max(0, this.#triedAt + BACKOFF_MIN_MS - now()));
		}
		this.start();
	}

	ask(question: Question): void {
		this.#questions.push(question);
		this.hurry();
		this.pump();
	}

	/** Nobody waits for the answer any more. */
	forget(question: Question): void {
		const at = this.#questions.indexOf(question);

		if (at >= 0) {
			this.#questions.splice(at, 1);
		}
		for (const [id, asked] of this.#asked) {
			if (asked === question) {
				this.#asked.delete(id);
			}
		}
	}

	/** Whether the connection, and its timers, are to keep the program running. */
	await(awaited: boolean): void {
		this.#awaited = awaited;
		this.#hold(this.#socket);
		this.#hold(this.#timer);
	}

	#hold(one: { ref(): unknown; unref(): unknown } | undefined): void {
		if (this.#awaited) {
			one?.ref();
		} else {
			one?.unref();
		}
	}

	/** The session was ended: what comes goes to a new one. */
	renew(): void {
		this.#close();
		this.state = 'idle';
		this.#leave();
		this.#known = false;
	}

	/** Leave the session behind: the next connection begins another one, and the daemon will say that it knows nothing of it. */
	#leave(): void {
		this.session = randomBytes(16);
		this.#begun = false;
	}

	/** Go on with a session of another process. */
	inherit(session: Buffer): void {
		this.session = session;
		this.#known = this.#begun = true;
	}

	/** No more connections. */
	end(error: RationError): void {
		const questions = [...this.#asked.values(), ...this.#questions];

		this.#isEnded = true;
		this.renew();
		this.#asked.clear();
		this.#questions = [];
		questions.forEach((question) => question.fail(error));
	}

	get isUp(): boolean {
		return this.state === 'up';
	}

	/** The session exists at the daemon, as far as is known. */
	get isKnown(): boolean {
		return this.#known;
	}

	// ---- connecting ----

	#later(ms: number, what: () => void): void {
		cancel(this.#timer);
		this.#timer = later(what, ms);
		this.#hold(this.#timer);
	}

	#wait(ms: number): void {
		this.state = 'waiting';
		this.#later(ms, () => this.#dial());
	}

	#dial(): void {
		const socket = connect(this.address);

		this.state = 'connecting';
		this.#triedAt = now();
		this.#socket = socket;
		this.#reader = new FrameReader();
		this.#hold(socket);
		socket.setNoDelay(true);
		socket.on('connect', () => this.#greet());
		socket.on('data', (piece) => this.#read(socket, piece));
		socket.on('error', (error) => this.#broken(socket, error.message));
		socket.on('close', () => this.#broken(socket, 'the daemon closed the connection'));
		this.#later(CONNECT_MS, () => this.#broken(socket, 'no connection in time'));
	}

	#greet(): void {
		this.state = 'greeting';
		this.reason = 'the daemon does not answer';
		this.#helloId = this.#put({
			body: {
				case: 'hello',
				value: {
					version: VERSION,
					session: this.session,
					lifetimeMs: this.lifetimeMs,
					nextBatch: BigInt(this.outbox.kept[0]?.number ?? this.outbox.nextNumber),
					agent: AGENT,
					nextOperation: BigInt(this.operations.next),
					incarnation: Buffer.from(this.#incarnation, 'hex'),
				},
			},
		});
		this.#later(CONNECT_MS, () => this.#fail('the daemon does not answer'));
	}

	#broken(socket: Socket, why: string): void {
		if (socket !== this.#socket) {
			return;
		}
		const before = this.state;

		this.#fail(why);
		if (before === 'connecting') {
			const error = new RationError('UNAVAILABLE', why, this.address.url);
			this.#fails(error);
			this.operations.unreachable(error);
			this.events.unreachable(error);
		}
	}

	#fails(error: RationError): void {
		const questions = this.#questions;

		this.#questions = [];
		questions.forEach((question) => question.fail(error));
	}

	/** This connection is over; the next one comes after a pause, longer each time and by a random part shorter. */
	#fail(why: string): void {
		this.#close();
		this.reason = why;
		this.#backoff = Math.min(BACKOFF_MAX_MS, this.#backoff === 0 ? BACKOFF_MIN_MS : this.#backoff * 2);
		this.#wait(1 + randomInt(this.#backoff));
		this.events.down(new RationError('UNAVAILABLE', why, this.address.url));
	}

	#close(): void {
		const socket = this.#socket;

		this.#socket = undefined;
		socket?.destroy();
		cancel(this.#timer);
		this.#out = [];
		this.#pingId = this.#commitId = 0;
		this.#telling.broken();
		this.#adds.clear();
		this.#asked.forEach((question) => question.again());
		this.#questions = [...this.#asked.values(), ...this.#questions];
		this.#asked.clear();
	}

	// ---- sending ----

	/** Append a request; all of one turn go in one write. */
	#put(request: RequestInit): number {
		const id = this.#nextId++;

		this.#out.push(frameOf({ ...request, id: BigInt(id) }));
		if (!this.#flushing) {
			this.#flushing = true;
			process.nextTick(() => this.#flush());
		}
		return id;
	}

	#flush(): void {
		const out = this.#out;

		this.#flushing = false;
		this.#out = [];
		if (out.length > 0) {
			this.#socket?.write(out.length === 1 ? (out[0] as Uint8Array) : Buffer.concat(out));
		}
	}

	/** Send whatever there is to be sent. */
	pump(): void {
		if (this.state !== 'up') {
			return;
		}
		const wasDue = this.#isDue;

		for (let batch = this.outbox.next(); batch !== undefined; batch = this.outbox.next()) {
			this.#telling.tell(batch.counters, batch.number, (request) => this.#put(request));
			const value = { batch: BigInt(batch.number), handles: batch.counters.map((counter) => counter._handle), deltas: batch.deltas };
			this.#adds.add(this.#put({ body: { case: 'add', value } }));
		}
		this.operations.send((request) => this.#put(request));
		for (const question of this.#questions.splice(0)) {
			this.#asked.set(this.#put({ body: question.body }), question);
		}
		this.#commit();
		if (!wasDue && this.#isDue) {
			this.#heardAt = now();
			this.#watch();
		}
	}

	/** Don't wait for the daemon to write its file by itself when much is kept until then. */
	#commit(): void {
		if (this.keeps && this.#commitId === 0 && (this.outbox.isHalfFull || this.operations.isHalfFull) && now() >= this.#commitAt) {
			this.#commitId = this.#put({ body: { case: 'flush', value: { durable: true } } });
		}
	}

	// ---- watching over it ----

	get #isDue(): boolean {
		return this.#asked.size > 0 || this.#telling.isDue || this.outbox.isUnanswered || this.operations.isUnanswered;
	}

	#watch(): void {
		cancel(this.#timer);
		if (this.#isDue || !('path' in this.address)) {
			this.#later(Math.max(1, this.#heardAt + (this.#pingId === 0 ? SILENCE_MS : ANSWER_MS) - now()), () => this.#check());
		}
	}

	#check(): void {
		const silence = now() - this.#heardAt;

		if (this.#pingId !== 0 && silence >= ANSWER_MS) {
			this.#fail('the daemon does not answer any more');
			return;
		}
		if (this.#pingId === 0 && silence >= SILENCE_MS) {
			this.#pingId = this.#put({ body: { case: 'ping', value: {} } });
		}
		this.#watch();
	}

	// ---- receiving ----

	#read(socket: Socket, piece: Buffer): void {
		this.#heardAt = now();
		try {
			for (const reply of this.#reader.take(piece)) {
				if (socket !== this.#socket) {
					return;
				}
				this.#take(reply);
			}
		} catch (error) {
			if (socket === this.#socket) {
				this.#fail(`what the daemon sent is no reply: ${(error as Error).message}`);
			}
		}
		if (socket === this.#socket && this.state === 'up') {
			this.pump();
			this.#watch();
		}
	}

	#take(reply: Reply): void {
		const [id, answer] = [Number(reply.id), reply.body];

		if (this.state === 'greeting') {
			this.#takeGreeting(id, answer);
		} else if (answer.case === 'goodbye') {
			this.#takeGoodbye(answer.value.code, answer.value.text);
		} else if (answer.case === 'durable') {
			this.outbox.drop(Number(answer.value.batch));
			this.operations.durable(Number(answer.value.operation));
		} else if (id !== 0) {
			this.#takeAnswer(id, answer);
		}
	}

	#takeGreeting(id: number, answer: Answer): void {
		if (answer.case === 'welcome' && id === this.#helloId) {
			this.#takeWelcome(answer.value);
		} else if (answer.case === 'error' || answer.case === 'goodbye') {
			this.#fail(`the daemon refuses: ${codeName(answer.value.code)}: ${answer.value.text}`);
		} else if (answer.case !== undefined) {
			this.#fail('the daemon did not begin with a welcome');
		}
	}

	#takeWelcome(welcome: Welcome): void {
		const incarnation = Buffer.from(welcome.incarnation).toString('hex');
		const { keeps } = welcome;
		const sameDaemon = incarnation !== '' && incarnation === this.#incarnation;
		const resumed = welcome.resumed && sameDaemon;
		// Resumed, by a daemon whose Welcome that said restored was lost: nothing was sent to it yet.
		const restored = welcome.restored || (welcome.resumed && !sameDaemon);
		const { maxItems = 0, maxFrame = 0 } = welcome.limits ?? {};
		const maxEntries = Math.min(maxItems, Math.floor((maxFrame - FRAME_EXTRA) / ENTRY_BYTES));
		const about = { keeps, resumed, restored, sameDaemon, maxEntries };
		const batches = { ...about, last: Number(welcome.lastBatch), durable: Number(welcome.durableBatch) };
		const operations = { ...about, last: Number(welcome.lastOperation), durable: Number(welcome.durableOperation) };
		const isLost = this.#known && this.operations.isGone(operations);

		if (welcome.version !== VERSION) {
			this.#fail(`the daemon speaks version ${welcome.version} of the protocol, this library ${VERSION}`);
			return;
		}
		if (maxEntries < 1 || maxFrame < MIN_FRAME) {
			this.#fail("the daemon's limits leave no room for a request");
			return;
		}
		if (sameDaemon && !resumed && !restored && this.#begun) {
			// Its state file may still have operations of the session, under numbers that ours would be given again.
			this.#leave();
			this.#fail('the daemon has forgotten the session');
			return;
		}
		this.#telling.limits = welcome.limits;
		this.keeps = keeps;
		this.operations.window = welcome.limits?.maxOperationsKept || this.operations.window;
		if (!resumed) {
			this.#telling.renew();
		}
		this.state = 'up';
		cancel(this.#timer);
		if (!this.outbox.welcome(batches) || !this.operations.welcome(operations, (request) => this.#put(request))) {
			this.#leave();
			this.#fail('the daemon knows the session by what was never sent');
			return;
		}
		this.#incarnation = incarnation;
		this.#known = this.#begun = true;
		this.reason = '';
		this.events.up(isLost);
		this.operations.tellLost();
		this.pump();
	}

	#takeGoodbye(code: number, text: string): void {
		if (code === codes.ABORTED) {
			// Somebody else has it, a copy of this process perhaps: to take it back would go on for ever.
			this.#leave();
		} else if (code !== codes.UNAVAILABLE && code !== codes.RESOURCE_EXHAUSTED && code !== codes.DEADLINE_EXCEEDED) {
			this.#fault(code, text);
			return;
		}
		this.#fail(`the daemon ended the connection: ${codeName(code)}: ${text}`);
	}

	/** The daemon takes what we do for a fault. It may be the oldest batch, and must not be so for ever. */
	#fault(code: number, text: string): void {
		const number = this.outbox.kept.find((batch) => !batch.applied)?.number ?? 0;

		this.#faults = number === this.#faultBatch ? this.#faults + 1 : 1;
		this.#faultBatch = number;
		if (this.#faults >= MAX_FAULTS) {
			this.outbox.loseOldest(code, text);
			this.#faults = 0;
		}
		this.#fail(`the daemon refuses: ${codeName(code)}: ${text}`);
	}

	#takeAnswer(id: number, answer: Answer): void {
		const question = this.#asked.get(id);

		if (this.#telling.take(id, answer)) {
			this.#backoff = answer.case === 'interned' ? 0 : this.#backoff;
		} else if (question !== undefined) {
			if (question.take(answer)) {
				this.#asked.delete(id);
			}
		} else if (id === this.#pingId) {
			this.#pingId = 0;
		} else if (id === this.#commitId) {
			this.#commitId = 0;
			this.#commitAt = answer.case === 'error' ? now() + COMMIT_RETRY_MS : -Infinity;
		} else if (this.#adds.delete(id)) {
			this.#takeApplied(answer);
		} else {
			this.#takeOperation(id, answer);
		}
	}

	#takeApplied(answer: Answer): void {
		if (answer.case === 'error') {
			this.#fault(answer.value.code, answer.value.text);
		} else if (answer.case === 'applied' && this.outbox.takeApplied(Number(answer.value.batch), answer.value.errors)) {
			this.#backoff = 0;
			this.#faults = 0;
		} else {
			this.#fail('an acknowledgement of a batch that was not sent');
		}
	}

	#takeOperation(id: number, answer: Answer): void {
		const taken = this.operations.take(id, answer);

		if (taken === 'fault') {
			this.#fail('the daemon did not take the number of an operation');
		} else if (taken === 'taken') {
			this.#backoff = 0;
		}
	}
}
