/**
 * Count and ration through rationd.
 *
 * @packageDocumentation
 */
export type { Amount } from './amount.js';
export { Client, type ClientEvents } from './client.js';
export type { Counter } from './counter.js';
export { codes, RationError, type Code } from './error.js';
export type { Hold } from './hold.js';
export type { Fallback, Lease, LeaseOptions } from './lease.js';
export {
	RefusedError,
	type Binding, type CallOptions, type ChargeItem, type ChargeOptions, type ChargeResult, type ClientOptions, type Consistency, type Entry,
	type FlushOptions, type GetOptions, type HoldOptions, type Kind, type Loss, type Metric, type UnchargeOptions, type Value, type View,
	type WalkOptions, type Window,
} from './types.js';
