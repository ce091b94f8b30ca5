import { RationError, invalid } from './error.js';

/**
 * A whole number, exactly. The library takes a number or a bigint everywhere; it gives a number where that is exact, up to 2^53 - 1 in
 * magnitude, and a bigint beyond. Compare it with `<`, `>` and `==` as it is; to compute with it say `Number(x)` or `BigInt(x)` first.
 */
export type Amount = number | bigint;

const MIN_INT64 = -(2n ** 63n);
const MAX_INT64 = 2n ** 63n - 1n;
/** @internal The most that can be charged, leased or set as a limit at once. */
export const MAX_CHARGE = 2n ** 62n;

/** @internal */
export function isInt64(n: bigint): boolean {
	return n >= MIN_INT64 && n <= MAX_INT64;
}

/** @internal The number, if that is exact. */
export function amountOf(n: bigint): Amount {
	return n >= Number.MIN_SAFE_INTEGER && n <= Number.MAX_SAFE_INTEGER ? Number(n) : n;
}

/** @internal What was given in place of what was expected. */
export function describe(given: unknown): string {
	switch (typeof given) {
		case 'string':
			return `${JSON.stringify(given)}, a string`;
		case 'bigint':
			return `${given}n, a bigint`;
		case 'function':
			return 'a function';
		case 'object':
			return given === null ? 'null' : Array.isArray(given) ? 'an array' : 'an object';
		default:
			return String(given);
	}
}

/** @internal Options of the caller's: an object, of this kind or another, but no number or name that was meant to be one of them. */
export function checkOptions(options: unknown, name = 'options'): void {
	if (typeof options !== 'object' || options === null || Array.isArray(options)) {
		throw invalid(`expected an object, not ${describe(options)}`, name);
	}
}

/** @internal A whole number of the caller's; `item` is what it is for. */
export function wholeOf(n: unknown, item: string): bigint {
	if (typeof n === 'bigint') {
		if (!isInt64(n)) {
			throw new RationError('OUT_OF_RANGE', `${n} is not a signed 64-bit integer`, item);
		}
		return n;
	}
	if (typeof n !== 'number') {
		throw invalid(`expected a number or a bigint, not ${describe(n)}`, item);
	}
	if (!Number.isInteger(n)) {
		throw invalid(`expected a whole number, not ${n}`, item);
	}
	if (!Number.isSafeInteger(n)) {
		throw new RationError('OUT_OF_RANGE', `${n} is beyond 2^53 - 1, where numbers are not exact: use a bigint`, item);
	}
	return BigInt(n);
}

/** @internal An amount that can be charged: 1 to 2^62. */
export function chargeOf(n: unknown, item: string): bigint {
	const amount = wholeOf(n, item);

	if (amount < 1n || amount > MAX_CHARGE) {
		throw invalid(`${n} is not an amount: 1 to 2^62`, item);
	}
	return amount;
}

/** @internal An option that is a whole number within bounds. */
export function optionOf(n: unknown, name: string, min: number, max: number): number {
	if (typeof n !== 'number' || !Number.isInteger(n) || n < min || n > max) {
		throw invalid(`expected a whole number from ${min} to ${max}, not ${describe(n)}`, name);
	}
	return n;
}
