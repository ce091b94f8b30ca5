import type { Amount } from './amount.js';
import type { Code } from './error.js';
import { amountOf } from './amount.js';
import { codeName, RationError } from './error.js';
import {
	Binding_Kind, Kind as WireKind, Window_Kind, Window_Unit,
	type Binding as WireBinding, type Value as WireValue, type View as WireView, type Window as WireWindow,
} from './generated/ration_pb.js';

/** What a client is made with; all of it has defaults. */
export interface ClientOptions {
	/** `unix:PATH`, `tcp:HOST:PORT` or `tcp:[ADDRESS]:PORT`; default: `$RATIOND_SOCKET`, else `unix:/run/rationd/rationd.sock`. */
	url?: string;
	/** How long growth waits at most before it is sent, in milliseconds: 1 to 60,000; default 50. */
	sendIntervalMs?: number;
	/** How long a call waits for the daemon's answer if it does not say so itself, in milliseconds; default 5,000. */
	timeoutMs?: number;
	/**
	 * How long the daemon remembers this client after its connection broke: 0 to 86,400,000 ms; default 60,000. What was sent and not
	 * acknowledged is counted once if the client is back within this time, and what it holds is held for so long. Leases need 1,000 or more.
	 */
	sessionLifetimeMs?: number;
	/** About how many bytes are kept until the daemon has them for good: 64 KiB to 1 GiB; default 4 MiB. Beyond, growth merges in its counters. */
	maxUnacknowledged?: number;
	/** Counters of this client: 1 to 2^26; default 1,000,000. */
	maxCounters?: number;
	/** How long the end of the program is held up at most to deliver what is left, in milliseconds; 0: not at all; default 2,000. */
	exitTimeoutMs?: number;
}

/** What most calls take. */
export interface CallOptions {
	/** How long to wait for the daemon's answer, in milliseconds; `Infinity`: for ever. */
	timeoutMs?: number;
	/** Stop waiting when this is aborted; the call fails with its reason. */
	signal?: AbortSignal;
}

/** `fresh` (default): at most `errorBound` behind. `cached`: the totals as they are. `exact`: all that any client had acknowledged. */
export type Consistency = 'fresh' | 'cached' | 'exact';

/** A metric either only grows (`counter`), or goes up and down (`gauge`). */
export type Kind = 'counter' | 'gauge';

/** What the daemon has at a path. */
export interface Value {
	/** Of the counter. */
	readonly path: string;
	/** Of its metric. */
	readonly kind: Kind;
	/** There is nothing below it. */
	readonly leaf: boolean;
	/** Added at this very path. */
	readonly own: Amount;
	/** `own` and all below. */
	readonly total: Amount;
}

/** How far off values can be. */
export interface View {
	/** They may lack at most this much, in magnitude ... */
	readonly errorBound: Amount;
	/** ... and are at most this old. */
	readonly ageMs: number;
}

/** An entry of a walk. */
export interface Entry extends Value {
	/** The number of segments of its path. */
	readonly depth: number;
}

/** Options of {@link Client.get}. */
export interface GetOptions extends CallOptions {
	/** How consistent the answer is to be; default: `fresh`. */
	consistency?: Consistency;
}

/** Options of {@link Client.walk}. */
export interface WalkOptions extends GetOptions {
	/** Levels below the root; default: all. */
	depth?: number;
}

/** Options of {@link Client.flush}. */
export interface FlushOptions extends CallOptions {
	/** Wait until it is in the daemon's state file too. */
	durable?: boolean;
}

/** A path and how much of it; default 1. */
export interface ChargeItem {
	/** Where room is asked for, and all above it. */
	path: string;
	/** How much: 1 to 2^62. */
	amount?: Amount;
}

/** Options of {@link Client.charge}. */
export interface ChargeOptions extends CallOptions {
	/** Only say what would be answered; change nothing. */
	dryRun?: boolean;
	/** Refused now, but could ever fit: wait so long for room, in milliseconds; `Infinity`: as long as the daemon lets anybody, a day. */
	waitMs?: number;
	/** Of a gauge: held by nobody until a detached uncharge, not by this client. */
	detached?: boolean;
}

/** Options of {@link Client.hold}. */
export type HoldOptions = Pick<ChargeOptions, 'waitMs' | 'timeoutMs' | 'signal'>;

/** Options of {@link Client.uncharge}. */
export interface UnchargeOptions extends CallOptions {
	/** Give back what detached charges hold there. */
	detached?: boolean;
}

/** The stretch of time that a limit counts in. */
export type Window =
	| { readonly kind: 'none' }
	| { readonly kind: 'per'; readonly durationMs: number }
	| { readonly kind: 'calendar'; readonly unit: 'day' | 'week' | 'month' }
	| { readonly kind: 'rate' };

/** A limit that has something to say about a charge. */
export interface Binding {
	/** `max`, `rate`: refuses. `high`: granted, and above it now. `shadow`: would have refused, if it were not only tried out. */
	readonly kind: 'max' | 'rate' | 'high' | 'shadow';
	/** Of the node with the limit: a path of the charge or an ancestor of it. */
	readonly path: string;
	/** What the limit counts in. */
	readonly window: Window;
	/** The limit: a `max`, a `high`, or a rate's burst. */
	readonly limit: Amount;
	/** What it was held against; of a grant: with it. */
	readonly usage: Amount;
	/** What would still fit. */
	readonly left: Amount;
	/** When it may fit: 0: at any moment; `Infinity`: never. */
	readonly retryAfterMs: number;
}

/** What came of a charge. */
export interface ChargeResult {
	/** All of it; else nothing. */
	readonly granted: boolean;
	/** The limits that have something to say; those that refuse first. */
	readonly bindings: readonly Binding[];
	/** So many more are not listed. */
	readonly omitted: number;
	/** Refused: when it may fit: 0: at any moment; `Infinity`: never. */
	readonly retryAfterMs: number;
}

/** What was added and is not counted: what the event `loss` tells. */
export interface Loss {
	/** Why, as a name: `INVALID_ARGUMENT` for a negative addition to what only grows, say. */
	readonly code: Code;
	/** Where it was added. */
	readonly path: string;
	/** How much. */
	readonly amount: Amount;
	/** Why, for people. */
	readonly text: string;
}

/** What is known of a metric. */
export interface Metric {
	/** It only grows, or goes up and down. */
	kind: Kind;
	/** The most counters under it; 0: no ceiling of its own. */
	maxCounters: number;
	/** Past the ceiling count under `<parent>/__other__`. */
	overflow: boolean;
	/** Idle counters are removed after this; 0: never. */
	expireAfterMs: number;
}

/** A charge that a limit refused. */
export class RefusedError extends RationError {
	/** The limits that refused it first. */
	readonly bindings: readonly Binding[];
	/** When it may fit: 0: at any moment; `Infinity`: never. */
	readonly retryAfterMs: number;

	/** @internal */
	constructor(result: ChargeResult, path: string) {
		super('RESOURCE_EXHAUSTED', refusalText(result), path);
		this.name = 'RefusedError';
		this.bindings = result.bindings;
		this.retryAfterMs = result.retryAfterMs;
	}
}

function refusalText({ bindings, retryAfterMs }: ChargeResult): string {
	const binding = bindings[0];
	const retry = retryAfterMs === Infinity ? 'never' : retryAfterMs === 0 ? 'when others give back' : `in ${retryAfterMs} ms`;

	return binding === undefined
		? 'refused'
		: `refused by ${binding.path}: ${binding.kind} ${binding.limit}, usage ${binding.usage}, left ${binding.left}; retry: ${retry}`;
}

// ---- from the wire ----

/** @internal */
export function kindOf(kind: WireKind): Kind {
	return kind === WireKind.GAUGE ? 'gauge' : 'counter';
}

/** @internal Throws what is wrong with it. */
export function valueOf(path: string, value: WireValue | undefined): Value {
	if (value === undefined || value.code !== 0) {
		throw new RationError(value?.code ?? 'INTERNAL', value?.text || codeName(value?.code ?? 13), path);
	}
	return { path, kind: kindOf(value.kind), leaf: value.leaf, own: amountOf(value.own), total: amountOf(value.total) };
}

/** @internal */
export function viewOf(view: WireView | undefined): View {
	return { errorBound: amountOf(view?.errorBound ?? 0n), ageMs: Number(view?.ageMs ?? 0n) };
}

function windowOf(window: WireWindow | undefined): Window {
	switch (window?.kind) {
		case Window_Kind.PER:
			return { kind: 'per', durationMs: Number(window.durationMs) };
		case Window_Kind.CALENDAR:
			return { kind: 'calendar', unit: window.unit === Window_Unit.MONTH ? 'month' : window.unit === Window_Unit.WEEK ? 'week' : 'day' };
		case Window_Kind.RATE:
			return { kind: 'rate' };
		default:
			return { kind: 'none' };
	}
}

const bindingKinds = {
	[Binding_Kind.MAX]: 'max',
	[Binding_Kind.RATE]: 'rate',
	[Binding_Kind.HIGH]: 'high',
	[Binding_Kind.SHADOW]: 'shadow',
} as const;

function bindingOf(binding: WireBinding): Binding {
	return {
		kind: bindingKinds[binding.kind] ?? 'max',
		path: binding.path,
		window: windowOf(binding.window),
		limit: amountOf(binding.limit),
		usage: amountOf(binding.usage),
		left: amountOf(binding.left),
		retryAfterMs: binding.retryAfterMs < 0n ? Infinity : Number(binding.retryAfterMs),
	};
}

/** @internal */
export function chargeResultOf(granted: boolean, wire: WireBinding[], omitted: number): ChargeResult {
	const bindings = wire.map(bindingOf);
	const refusing = bindings.filter((binding) => binding.kind === 'max' || binding.kind === 'rate');

	return { granted, bindings, omitted, retryAfterMs: granted ? 0 : Math.max(0, ...refusing.map((binding) => binding.retryAfterMs)) };
}
