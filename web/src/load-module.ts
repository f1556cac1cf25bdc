/**
 * Fetches, compiles and starts one build of the module. Importing this file does nothing by itself.
 */
import { KvLensError } from './errors.js';
import type { MainModule } from './kvlens-simd.js';
import type { ModuleOptions } from './types.js';
import { watchThreads } from './thread-watch.js';
import { variantFiles, type Choice } from './variants.js';

type Factory = (options: {
  readonly threads: number;
  readonly mainScriptUrlOrBlob?: string;
  readonly locateFile: (name: string) => string;
  readonly instantiateWasm: (
    imports: WebAssembly.Imports,
    receive: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
  ) => object;
}) => Promise<MainModule>;

export interface LoadedModule {
  readonly module: MainModule;
  /** Stops its threads. */
  readonly end: () => void;
}

/** A thread that has not started after this many milliseconds is taken for one that never will. */
const PATIENCE = 30_000;

/** Errors: module_load_failed, unsupported_environment. */
export async function loadModule(
  { variant, threads }: Choice,
  wasm: ModuleOptions['wasm'],
  patience = PATIENCE,
): Promise<LoadedModule> {
  if ('ServiceWorkerGlobalScope' in globalThis) {
    throw new KvLensError(
      'unsupported_environment',
      { field: 'scope', value: 'a service worker', allowed: 'a page or a dedicated worker' },
      'a service worker cannot load kvlens; load it in a page or in a dedicated worker',
    );
  }
  const files = variantFiles(variant);
  const watch = threads > 1 ? watchThreads(patience) : undefined;
  try {
    const compiled = await compile(wasm ?? files.wasm);
    const { default: factory } = (await import(
      /* @vite-ignore */ /* webpackIgnore: true */ files.script.href
    )) as { default: Factory };
    // The factory's own promise never settles if the instance or a thread cannot be made.
    const module = await new Promise<MainModule>((resolve, reject) => {
      watch?.start(reject);
      factory({
        threads,
        // Node finds the script by itself, and accepts no file address here.
        ...(files.script.protocol !== 'file:' && { mainScriptUrlOrBlob: files.script.href }),
        locateFile: () => files.wasm.href,
        instantiateWasm(imports, receive) {
          WebAssembly.instantiate(compiled, imports)
            .then((instance) => receive(instance, compiled))
            .catch(reject);
          return {};
        },
      }).then(resolve, reject);
    });
    watch?.stop();
    const { PThread } = module as { PThread?: { terminateAllThreads(): void } };
    return { module, end: () => PThread?.terminateAllThreads() };
  } catch (error) {
    watch?.fail();
    const reason = error instanceof Error ? error.message : String(error);
    throw new KvLensError(
      'module_load_failed',
      { name: variant },
      `cannot load the ${variant} build of the module: ${reason}`,
      error,
    );
  }
}

async function compile(source: NonNullable<ModuleOptions['wasm']>): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) {
    return WebAssembly.compile(source as BufferSource);
  }
  // Bundlers rewrite `new URL(..., import.meta.url)`, so it must not be written with a variable.
  const here = import.meta.url;
  const url = new URL(source, globalThis.location?.href ?? here);
  if (url.protocol === 'file:') {
    // Node, whose fetch reads no files. The name is kept out of the import for bundlers.
    const fs = 'node:fs/promises';
    const { readFile } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ fs)) as {
      readFile: (url: URL) => Promise<Uint8Array<ArrayBuffer>>;
    };
    return WebAssembly.compile(await readFile(url));
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url.href} answered ${response.status}`);
  // Streaming needs the right media type, which simple servers do not send.
  return response.headers.get('content-type')?.startsWith('application/wasm')
    ? WebAssembly.compileStreaming(response)
    : WebAssembly.compile(await response.arrayBuffer());
}
