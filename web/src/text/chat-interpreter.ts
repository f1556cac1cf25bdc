/**
 * Runs chat templates by `@huggingface/jinja`, with the places changed in which that library
 * silently differs from Python's Jinja: the scope of `set` in loops, the text of values, strings in
 * `for`, filters of `none`, and missing attributes in `selectattr`.
 */
import { Environment, Interpreter, parse, tokenize } from '@huggingface/jinja';
import { strftime } from './strftime.js';

/** A node of a parsed template. */
interface Node {
  readonly type: string;
  readonly value?: unknown;
}

interface Value {
  readonly type: string;
  readonly value: unknown;
}

interface Scope {
  readonly tests: ReadonlyMap<string, (...values: (Value | undefined)[]) => boolean>;
  set(name: string, value: unknown): void;
}

interface ForNode extends Node {
  readonly iterable: Node;
  readonly body: readonly Node[];
}

interface BinaryNode extends Node {
  readonly operator: { readonly value: string };
  readonly left: Node;
  readonly right: Node;
}

interface FilterNode extends Node {
  readonly callee?: Node;
  readonly args?: readonly Node[];
}

/** The methods of the library's interpreter that are called or replaced here. */
interface LibraryInterpreter {
  run(program: unknown): Value;
  evaluate(node: Node | undefined, scope: Scope): Value;
  evaluateBlock(statements: readonly Node[], scope: Scope): Value;
  evaluateFor(node: ForNode, scope: Scope): Value;
  evaluateBinaryExpression(node: BinaryNode, scope: Scope): Value;
  applyFilter(operand: Value, filter: FilterNode, scope: Scope): Value;
}

// The declarations of the library make these methods private.
const Library = Interpreter as unknown as new (scope: Scope) => LibraryInterpreter;
const ChildScope = Environment as unknown as new (parent?: Scope) => Scope;

// Statements whose value is the text that they have made.
const textStatements = new Set(['If', 'For', 'CallStatement', 'FilterStatement']);
const silentStatements = new Set(['Set', 'Macro', 'Comment']);
// Filters that take the text of any value.
const textFilters = new Set(['string', 'trim', 'upper', 'lower', 'title', 'capitalize']);

class PythonInterpreter extends Library {
  readonly #loopBodies = new WeakSet<object>();

  #string(text: string, scope: Scope): Value {
    return this.evaluate({ type: 'StringLiteral', value: text }, scope);
  }

  /** `node` is undefined for the bounds that a slice leaves out. */
  override evaluate(node: Node | undefined, scope: Scope): Value {
    return node?.type === 'Evaluated' ? (node.value as Value) : super.evaluate(node, scope);
  }

  override evaluateBlock(statements: readonly Node[], scope: Scope): Value {
    // Each turn of a loop has its own variables.
    const own = this.#loopBodies.has(statements) ? new ChildScope(scope) : scope;
    let text = '';
    for (const statement of statements) {
      const value = this.evaluate(statement, own);
      if (silentStatements.has(statement.type)) continue;
      text += textStatements.has(statement.type) ? (value.value as string) : textOf(value);
    }
    return this.#string(text, scope);
  }

  override evaluateFor(node: ForNode, scope: Scope): Value {
    this.#loopBodies.add(node.body);
    const { iterable } = node;
    if (iterable.type === 'SelectExpression') return super.evaluateFor(node, scope);
    let value = this.evaluate(iterable, scope);
    if (value.type === 'StringValue') {
      const chars = Array.from(value.value as string, (char) => ({
        type: 'StringLiteral',
        value: char,
      }));
      value = this.evaluate({ type: 'ArrayLiteral', value: chars }, scope);
    }
    return super.evaluateFor({ ...node, iterable: { type: 'Evaluated', value } }, scope);
  }

  override evaluateBinaryExpression(node: BinaryNode, scope: Scope): Value {
    if (node.operator.value !== '~') return super.evaluateBinaryExpression(node, scope);
    const left = textOf(this.evaluate(node.left, scope));
    return this.#string(left + textOf(this.evaluate(node.right, scope)), scope);
  }

  override applyFilter(operand: Value, filter: FilterNode, scope: Scope): Value {
    const name = (filter.type === 'CallExpression' ? filter.callee : filter)?.value as string;
    if (name === 'selectattr' || name === 'rejectattr') {
      return this.#filterByAttribute(operand, name === 'selectattr', filter.args ?? [], scope);
    }
    const isText = textFilters.has(name) && operand.type !== 'StringValue';
    if (!isText || operand.type === 'UndefinedValue') {
      return super.applyFilter(operand, filter, scope);
    }
    const text = this.#string(textOf(operand), scope);
    return name === 'string' ? text : super.applyFilter(text, filter, scope);
  }

  #filterByAttribute(operand: Value, selects: boolean, args: readonly Node[], scope: Scope): Value {
    if (!Array.isArray(operand.value)) throw new Error('selectattr needs a list');
    const [path, testName, compared] = args.map((arg) => this.evaluate(arg, scope));
    const test = testName && scope.tests.get(String(testName.value));
    if (testName && !test) throw new Error(`Unknown test: ${String(testName.value)}`);
    // No variable can have this name.
    const missing = this.evaluate({ type: 'Identifier', value: ' ' }, scope);
    const kept = (operand.value as Value[]).filter((item) => {
      let value: Value = item;
      for (const part of String(path?.value).split('.')) {
        value = (value.value instanceof Map && (value.value.get(part) as Value)) || missing;
      }
      const holds = test ? test(value, compared) : isTruthy(value);
      return holds === selects;
    });
    const nodes = kept.map((value) => ({ type: 'Evaluated', value }));
    return this.evaluate({ type: 'ArrayLiteral', value: nodes }, scope);
  }
}

function isTruthy({ value }: Value): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value instanceof Map ? value.size > 0 : Boolean(value);
}

/** The text that Python's `str` gives. */
function textOf(value: Value): string {
  if (value.type === 'StringValue') return value.value as string;
  return value.type === 'UndefinedValue' ? '' : representation(value);
}

/** The text that Python's `repr` gives. */
function representation(value: Value): string {
  switch (value.type) {
    case 'StringValue':
      return quoted(value.value as string);
    case 'BooleanValue':
      return value.value === true ? 'True' : 'False';
    case 'NullValue':
      return 'None';
    case 'UndefinedValue':
      return 'Undefined';
    case 'ArrayValue':
      return `[${(value.value as Value[]).map(representation).join(', ')}]`;
    case 'TupleValue': {
      const items = (value.value as Value[]).map(representation);
      return `(${items.join(', ')}${items.length === 1 ? ',' : ''})`;
    }
    case 'ObjectValue': {
      const entries = [...(value.value as Map<string, Value>)];
      return `{${entries.map(([key, each]) => `${quoted(key)}: ${representation(each)}`).join(', ')}}`;
    }
    case 'IntegerValue':
    case 'FloatValue':
      return String(value);
    default:
      throw new Error(`a ${value.type} has no text`);
  }
}

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escapes: Readonly<Record<string, string>> = {
    '\n': '\\n',
    '\r': '\\r',
    '\t': '\\t',
    '\\': '\\\\',
  };
  const body = text.replace(/[\\\n\r\t]/g, (char) => escapes[char]!);
  return quote + (quote === "'" ? body.replaceAll("'", "\\'") : body) + quote;
}

/** Parses a template. Throws whatever the library throws. */
export function parseTemplate(source: string): (variables: Record<string, unknown>) => string {
  const unix = source.replace(/\r\n?/g, '\n'); // Jinja knows one kind of line break
  const program = parse(tokenize(unix, { lstrip_blocks: true, trim_blocks: true }));
  return (variables) => {
    const scope = new ChildScope();
    for (const [name, value] of Object.entries({ ...globals, ...variables })) {
      scope.set(name, value);
    }
    return new PythonInterpreter(scope).run(program).value as string;
  };
}

const globals: Readonly<Record<string, unknown>> = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
  raise_exception: (message: unknown) => {
    throw new Error(String(message));
  },
  range: (...bounds: number[]) => {
    const [start, end, step] = bounds.length === 1 ? [0, bounds[0]!, 1] : [...bounds, 1];
    if (!step) throw new Error('range() needs a step other than 0');
    const length = Math.max(0, Math.ceil((end! - start!) / step));
    return Array.from({ length }, (_, i) => start! + i * step);
  },
  strftime_now: (format: unknown) => strftime(String(format), new Date()),
};
