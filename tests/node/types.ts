// What a program in TypeScript sees: compiled with --strict, as an ECMAScript module and as CommonJS, and never run.
import { Client, codes, RationError, RefusedError, type Amount, type Binding, type Code, type Counter, type Hold, type Lease, type Loss } from 'rationd';
import { StatsD } from 'rationd/statsd';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_: Equal<A, B>): void {}

export async function typed(): Promise<void> {
	await using client = new Client({ url: 'unix:/run/x', sendIntervalMs: 5 });
	const counter: Counter = client.counter('a/b');

	counter.incr();
	counter.incr(3n);
	client.decr('a', 2);
	// @ts-expect-error
	counter.incr('1');
	// @ts-expect-error
	counter.path = 'b';
	// @ts-expect-error
	counter._pending;
	// @ts-expect-error
	new Client({ uri: 'unix:/run/x' });

	const value = await client.get('a', { consistency: 'exact', timeoutMs: 5, signal: new AbortController().signal });
	same<typeof value.total, Amount>(true);
	same<Amount, number | bigint>(true);
	// @ts-expect-error
	value.total + 1;
	const [first] = await client.get(['a', 'b']);
	const own: Amount | undefined = first?.own;
	// @ts-expect-error
	await client.get('a', { consistency: 'perfect' });
	for await (const { path, depth } of client.walk('a', { depth: 1 })) {
		same<typeof path, string>(true);
		same<typeof depth, number>(true);
	}

	const { granted, bindings, retryAfterMs } = await client.charge('a', 1, { waitMs: 5 });
	same<typeof granted, boolean>(true);
	same<typeof bindings, readonly Binding[]>(true);
	same<typeof retryAfterMs, number>(true);
	await client.charge([{ path: 'a' }, { path: 'b', amount: 2n }], { dryRun: true });

	const result = await client.hold('a', 1, async (hold: Hold) => hold.isHeld);
	same<typeof result, boolean>(true);
	same<Awaited<ReturnType<typeof work>>, number>(true);
	async function work() {
		return client.hold('a', () => 5);
	}
	await using hold = await client.hold([{ path: 'a' }], { waitMs: 5 });
	const [[path, amount] = ['', 0n]] = hold.items;
	same<typeof path, string>(true);
	same<typeof amount, bigint>(true);

	await using lease: Lease = client.lease('a', 5, { ttlMs: 1000, lowWater: 2 });
	if (lease.try(1, 'open')) {
		lease.give();
	}

	client.on('loss', (loss: Loss) => console.log(loss.code, loss.amount));
	client.on('disconnect', (error) => same<typeof error, RationError>(true));
	// @ts-expect-error
	client.on('lost', () => {});
	try {
		await client.flush({ durable: true });
	} catch (error) {
		if (error instanceof RefusedError) {
			same<typeof error.bindings, readonly Binding[]>(true);
		} else if (error instanceof RationError) {
			same<typeof error.code, Code>(true);
			const status: number = codes[error.code];
			console.log(status, own);
		}
	}
	const statsd = new StatsD({ client, prefix: 'app', errorHandler: (error: Error) => console.log(error) });
	statsd.increment('a', 1, 0.5, (error) => console.log(error?.message));
	statsd.decrement(['a', 'b']);
}
