// The package as others get it: installed by npm, imported and required, read by the compiler, and its README.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Daemon } from './support.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const source = process.env.RATIOND_SOURCE;
const typescript = createRequire(path.join(here, '../package/'))('typescript');

let folder;

before(() => {
	folder = mkdtempSync(path.join(os.tmpdir(), 'rationd-package-'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

function npm(cwd, ...words) {
	execFileSync('npm', [...words, '--no-audit', '--no-fund', '--prefer-offline'], { cwd, stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, NODE_TEST_CONTEXT: undefined } });
}

function run(cwd, ...words) {
	return execFileSync(process.execPath, words, { cwd, encoding: 'utf8' });
}

// A checkout as git has it: nothing that was built in it before.
function checkout(name) {
	const root = path.join(folder, name);

	mkdirSync(path.join(root, 'clients'), { recursive: true });
	cpSync(path.join(source, 'proto'), path.join(root, 'proto'), { recursive: true });
	cpSync(path.join(source, 'clients/node'), path.join(root, 'clients/node'), {
		recursive: true,
		filter: (file) => !/clients\/node\/(node_modules|dist|src\/generated)$/.test(file),
	});
	return root;
}

function project(name) {
	const root = path.join(folder, name);

	mkdirSync(root, { recursive: true });
	writeFileSync(path.join(root, 'package.json'), JSON.stringify({ name, private: true }));
	return root;
}

const uses = `new Client('unix:/nowhere').counter('a').path + StatsD.name + (Client === again)`;

function assertUsable(cwd) {
	const text = `import { Client } from 'rationd'; import { StatsD } from 'rationd/statsd'; import { createRequire } from 'node:module';
		const again = createRequire(process.cwd() + '/')('rationd').Client; console.log(${uses});`;
	const required = `const { Client } = require('rationd'), { StatsD } = require('rationd/statsd'), again = Client; console.log(${uses});`;

	assert.equal(run(cwd, '--input-type=module', '-e', text), 'aStatsDtrue\n');
	assert.equal(run(cwd, '-e', required), 'aStatsDtrue\n');
}

test('npm install of a checkout, from elsewhere', () => {
	const app = project('app');

	npm(app, 'install', path.join(checkout('one'), 'clients/node'));
	assertUsable(app);
});

test('npm install of a checkout, as a copy', () => {
	const app = project('copy');

	npm(app, 'install', '--install-links', path.join(checkout('two'), 'clients/node'));
	rmSync(path.join(folder, 'two'), { recursive: true });
	assertUsable(app);
});

test('npm install ./clients/node at the top of a checkout', () => {
	const root = checkout('three');

	npm(root, 'install', './clients/node');
	assertUsable(root);
});

test('npm pack has what it takes, and no more', () => {
	const app = project('packed');
	const at = path.join(checkout('four'), 'clients/node');

	npm(at, 'ci', '--ignore-scripts');
	npm(at, 'pack', '--pack-destination', app);
	const [file] = readdirSync(app).filter((name) => name.endsWith('.tgz'));
	assert.equal(file, 'rationd-0.1.0.tgz');
	const list = execFileSync('tar', ['tzf', path.join(app, file)], { encoding: 'utf8' }).trim().split('\n');
	assert.ok(list.every((name) => /^package\/(package\.json|README\.md|dist\/[\w/.]+\.(js|mjs|d\.ts|d\.mts))$/.test(name)), String(list));
	npm(app, 'install', path.join(app, file));
	assertUsable(app);
});

test('types, with --strict, for modules and CommonJS', () => {
	for (const extension of ['mts', 'cts']) {
		const file = path.join(here, `types-check.${extension}`);
		writeFileSync(file, readFileSync(path.join(here, 'types.ts')));
		const program = typescript.createProgram([file], {
			strict: true, noEmit: true, target: typescript.ScriptTarget.ES2022, lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts'],
			module: typescript.ModuleKind.Node16, moduleResolution: typescript.ModuleResolutionKind.Node16, exactOptionalPropertyTypes: true,
			types: ['node'], typeRoots: [path.join(here, '../package/node_modules/@types')],
		});
		const faults = typescript.getPreEmitDiagnostics(program);
		assert.equal(typescript.formatDiagnostics(faults, { getCanonicalFileName: (name) => name, getCurrentDirectory: () => here, getNewLine: () => '\n' }), '');
	}
});

test('everything public is documented', () => {
	const at = path.join(here, '../package/dist');
	const program = typescript.createProgram([path.join(at, 'index.d.ts'), path.join(at, 'statsd.d.ts')], { types: [], skipLibCheck: true });
	const checker = program.getTypeChecker();
	const missing = [];
	const isDocumented = (symbol) => symbol.getDocumentationComment(checker).length > 0;

	for (const name of ['index', 'statsd']) {
		const module = checker.getSymbolAtLocation(program.getSourceFile(path.join(at, `${name}.d.ts`)));
		for (const exported of checker.getExportsOfModule(module)) {
			const symbol = exported.flags & typescript.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
			const members = [...(symbol.members?.values() ?? [])].filter((member) => {
				const [declaration] = member.declarations ?? [];
				return /^[a-z]/.test(member.name) && declaration !== undefined && !/^(private|#)/.test(declaration.getText());
			});
			for (const one of [symbol, ...members]) {
				if (!isDocumented(one)) {
					missing.push(`${symbol.name}.${one.name}`);
				}
			}
		}
	}
	assert.deepEqual(missing, []);
});

test('the examples of the README do what they say', async () => {
	const examples = [...readFileSync(path.join(here, '../package/README.md'), 'utf8').matchAll(/^```js\n(.*?)^```$/gms)].map(([, text]) => text);

	assert.ok(examples.length >= 7);
	for (const [i, text] of examples.entries()) {
		const fresh = await Daemon.start({ config: '[metric jobs]\nkind = gauge\n[quota jobs/acme]\nmax = 50\n' });
		const file = path.join(here, `example-${i}.mjs`);
		writeFileSync(file, typescript.transpile(text, { target: typescript.ScriptTarget.ES2022, module: typescript.ModuleKind.ESNext }));
		const child = spawn(process.execPath, [file], { env: { ...process.env, RATIOND_SOCKET: fresh.url }, stdio: ['ignore', 'pipe', 'pipe'] });
		let [stdout, stderr] = ['', ''];
		child.stdout.on('data', (piece) => (stdout += piece));
		child.stderr.on('data', (piece) => (stderr += piece));
		const [status] = await once(child, 'close');
		assert.deepEqual([status, stderr], [0, ''], text);
		for (const [, said] of text.matchAll(/console\.log\(\w+\); \/\/ (.*)$/gm)) {
			assert.ok(stdout.split('\n').includes(said), `${text}\nprinted ${stdout}`);
		}
		await fresh.stop();
	}
});
