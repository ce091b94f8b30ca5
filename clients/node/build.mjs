// Makes dist/ from src/ and the project's ration.proto: the message code first, then the library, CommonJS with an ECMAScript module
// over it, so that a program that uses both has one library and not two. `npm install` runs it (package.json, "prepare").
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const protocol = process.env.RATION_PROTO ?? path.join(here, '../../proto/ration.proto');
const tools = ['@bufbuild/buf/package.json', '@bufbuild/protoc-gen-es/package.json', 'typescript/package.json', '@bufbuild/protobuf'];

function run(file, args, env = {}) {
	execFileSync(file, args, { cwd: here, stdio: ['ignore', 2, 2], env: { ...process.env, ...env } });
}

// npm gives a package that is linked from elsewhere none of its dependencies; then it gets those of the lock file.
function needTools() {
	const { resolve } = createRequire(path.join(here, 'build.mjs'));
	const isThere = (name) => {
		try {
			return resolve(name) !== '';
		} catch {
			return false;
		}
	};
	if (!tools.every(isThere)) {
		run(process.platform === 'win32' ? 'npm.cmd' : 'npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--include=dev'],
			{ npm_config_global: 'false', npm_config_omit: '', npm_config_dry_run: 'false', NODE_ENV: 'development' });
	}
	return (name, program) => path.join(path.dirname(resolve(`${name}/package.json`)), 'bin', program);
}

function generate(program) {
	const [plugin, out] = [program('@bufbuild/protoc-gen-es', 'protoc-gen-es'), path.join(here, 'src/generated')];
	const template = { version: 'v2', plugins: [{ local: ['node', plugin], out, opt: ['target=ts', 'import_extension=js'] }] };

	rmSync(out, { recursive: true, force: true });
	run(process.execPath, [program('@bufbuild/buf', 'buf'), 'generate', '--template', JSON.stringify(template),
		path.dirname(protocol), '--path', protocol]);
}

// What the CommonJS module exports, by name, so that tools that read no CommonJS see it.
function writeModule(name) {
	const names = Object.keys(createRequire(import.meta.url)(`./dist/${name}.js`));

	writeFileSync(path.join(here, `dist/${name}.mjs`), `import library from './${name}.js';\nexport const { ${names.join(', ')} } = library;\n`);
	writeFileSync(path.join(here, `dist/${name}.d.mts`), `export * from './${name}.js';\n`);
}

if (!existsSync(protocol)) {
	if (existsSync(path.join(here, 'dist/index.js'))) {
		process.exit(0); // a package that was packed: built already
	}
	throw new Error(`${protocol} is not there: build this package in a checkout of rationd`);
}
const program = needTools();
generate(program);
rmSync(path.join(here, 'dist'), { recursive: true, force: true });
mkdirSync(path.join(here, 'dist'));
run(process.execPath, [program('typescript', 'tsc'), '-p', here]);
writeModule('index');
writeModule('statsd');
