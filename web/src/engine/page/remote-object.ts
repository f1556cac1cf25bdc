/** What the page's sides of models, caches and sessions have in common. */
import type { Connection, CallHooks } from './connection.js';
import type { ObjectKind } from '../protocol/messages.js';

type Method = (this: RemoteObject, ...args: unknown[]) => Promise<unknown>;

/** An object that lives in the worker and is called by its number there. */
export class RemoteObject {
  readonly #connection: Connection;
  readonly #kind: ObjectKind;
  readonly #id: number;

  constructor(connection: Connection, kind: ObjectKind, id: number) {
    this.#connection = connection;
    this.#kind = kind;
    this.#id = id;
  }

  /** Its number, if it lives in the worker of this connection. */
  static idIn(connection: Connection, object: RemoteObject): number | undefined {
    return object.#connection === connection ? object.#id : undefined;
  }

  /** Calls its method in the worker. */
  static call<T>(
    object: RemoteObject,
    method: string,
    args: readonly unknown[],
    hooks?: CallHooks,
  ): Promise<T> {
    return object.#connection.call(object.#kind, object.#id, method, args, hooks) as Promise<T>;
  }

  /** Releases what the object holds in the worker. Calling it again does nothing. */
  dispose(): Promise<void> {
    return RemoteObject.call(this, 'dispose', []);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}

/**
 * A class with the methods `names` of the public interface `Api`. Each sends its arguments to the
 * worker and resolves to what the worker's method of that name returns. `signal` and `onProgress`
 * of an options argument stay on the page.
 */
export function remoteClass<Api>() {
  return <Name extends keyof Api & string>(kind: ObjectKind, names: readonly Name[]) => {
    class Remote extends RemoteObject {
      constructor(connection: Connection, id: number) {
        super(connection, kind, id);
      }
    }
    for (const name of names) {
      const value: Method = function (...args) {
        const hooks = takeHooks(args);
        return RemoteObject.call(this, name, args, hooks);
      };
      Object.defineProperty(Remote.prototype, name, { value, writable: true, configurable: true });
    }
    return Remote as unknown as RemoteClass<Pick<Api, Name>>;
  };
}

type RemoteClass<Methods> = new (connection: Connection, id: number) => RemoteObject & Methods;

/** Takes `signal` and `onProgress` out of the last argument, which a message cannot carry. */
function takeHooks(args: unknown[]): CallHooks {
  const last = args.at(-1);
  if (typeof last !== 'object' || last === null) return {};
  if (!('signal' in last) && !('onProgress' in last)) return {};
  const { signal, onProgress, ...options } = last as CallHooks;
  args[args.length - 1] = options;
  return { signal, onProgress };
}
