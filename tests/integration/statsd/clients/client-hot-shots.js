// UDP, with and without its buffer; TCP; and unix datagrams, if the module that it takes for those could be built.
const StatsD = require('hot-shots');
const [udpPort, tcpPort, path] = process.argv.slice(2);
const n = 2000;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const close = (client) => new Promise((resolve) => client.close(resolve));

async function count(name, options) {
	const client = new StatsD({ prefix: 'hot.', globalTags: { env: 'test' }, errorHandler: (error) => {
		throw error;
	}, ...options });

	for (let i = 0; i < n; i++) {
		client.increment(name, 1, { route: '/x' });
		if (i % 20 === 0) {
			await pause(1);
		}
	}
	client.increment(name + '.list', 5, ['b:2', 'a:1']);
	await pause(50);
	await close(client);
	console.log(`hot/${name}/env=test/route=%2Fx ${n}`);
	console.log(`hot/${name}/list/a=1/b=2/env=test 5`);
}

(async () => {
	await count('udp', { host: '127.0.0.1', port: Number(udpPort) });
	await count('buffered', { host: '127.0.0.1', port: Number(udpPort), maxBufferSize: 1400 });
	await count('tcp', { protocol: 'tcp', host: '127.0.0.1', port: Number(tcpPort) });
	try {
		require('unix-dgram');
	} catch (error) {
		console.error('unix-dgram is not there: not over a unix socket');
		return;
	}
	await count('uds', { protocol: 'uds', path });
})();
