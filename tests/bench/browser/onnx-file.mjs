// Writes the benchmark's model as an ONNX graph, in the form that onnxruntime-web runs fastest on a
// CPU: `int8` has DynamicQuantizeLinear + MatMulInteger linears (fastest prefill), `f32` plain
// MatMul (fastest decode). Attention is plain operators with the queries of a key/value head
// stacked, so keys are not repeated; past and present are inputs and outputs; the vocabulary head
// sees the last row alone.
import { closeSync, openSync, writeSync } from 'node:fs';

import { bytes, float, integer, message, nested, text } from './protobuf.mjs';
import { quantiseInt8 } from './quantise.mjs';
import { layerMatrices, shape } from './shape.mjs';
import { drawGain, drawMatrix, toHalfSplit } from './weights.mjs';

const elementTypes = { f32: 1, int8: 3, int64: 7 };
const rotaryPositions = 4096;
const contrib = 'com.microsoft';

/** Plain numbers are integers; `{ f }` holds a float. */
function attribute(name, value) {
  if (Array.isArray(value))
    return message(
      text(1, name),
      value.map((i) => integer(8, i)),
      integer(20, 7),
    );
  if (Number.isInteger(value)) return message(text(1, name), integer(3, value), integer(20, 2));
  return message(text(1, name), float(2, value.f), integer(20, 1));
}

class Graph {
  nodes = [];
  initializers = [];
  inputs = [];
  outputs = [];
  #names = 0;
  #constants = new Map();

  /** Adds a node; returns the name of its first output, a fresh one unless `outputs` has names. */
  node(opType, inputs, { attributes = {}, outputs = [`t${++this.#names}`], domain = '' } = {}) {
    this.nodes.push(
      message(
        inputs.map((name) => text(1, name)),
        outputs.map((name) => text(2, name)),
        text(3, `${opType}_${this.nodes.length}`),
        text(4, opType),
        Object.entries(attributes).map(([name, value]) => nested(5, attribute(name, value))),
        text(7, domain),
      ),
    );
    return outputs[0];
  }

  fresh(n) {
    return Array.from({ length: n }, () => `t${++this.#names}`);
  }

  tensor(name, type, dims, values) {
    this.initializers.push(
      message(
        dims.map((dim) => integer(1, dim)),
        integer(2, elementTypes[type]),
        text(8, name),
        bytes(9, Buffer.from(values.buffer, values.byteOffset, values.byteLength)),
      ),
    );
    return name;
  }

  /** A small constant, made once for each value. */
  constant(type, dims, values) {
    const key = `${type}[${dims}]${values}`;
    if (!this.#constants.has(key)) {
      const data =
        type === 'f32'
          ? Float32Array.from(values)
          : type === 'int8'
            ? Int8Array.from(values)
            : BigInt64Array.from(values.map(BigInt));
      this.#constants.set(key, this.tensor(`c${this.#constants.size}`, type, dims, data));
    }
    return this.#constants.get(key);
  }

  integers(...values) {
    return this.constant('int64', [values.length], values);
  }

  #value(name, type, dims) {
    const dimensions = dims.map((dim) =>
      nested(1, message(Number.isInteger(dim) ? integer(1, dim) : text(2, dim))),
    );
    const tensorType = message(integer(1, elementTypes[type]), nested(2, message(dimensions)));
    return message(text(1, name), nested(2, message(nested(1, tensorType))));
  }

  input(name, type, dims) {
    this.inputs.push(this.#value(name, type, dims));
    return name;
  }

  output(name, type, dims) {
    this.outputs.push(this.#value(name, type, dims));
  }

  model() {
    const graph = message(
      this.nodes.map((node) => nested(1, node)),
      text(2, 'kvlens-benchmark'),
      this.initializers.map((tensor) => nested(5, tensor)),
      this.inputs.map((value) => nested(11, value)),
      this.outputs.map((value) => nested(12, value)),
    );
    const opset = (domain, version) => nested(8, message(text(1, domain), integer(2, version)));
    return message(
      integer(1, 8),
      text(2, 'kvlens'),
      nested(7, graph),
      opset('', 18),
      opset(contrib, 1),
    );
  }
}

function transpose(values, rows, cols) {
  const out = new values.constructor(values.length);
  for (let row = 0; row < rows; ++row) {
    for (let col = 0; col < cols; ++col) out[col * rows + row] = values[row * cols + col];
  }
  return out;
}

/** Linears and the embedding in one of the two storage types. */
class Linears {
  #graph;
  #weights;
  #quantised = new Map(); // activations that several linears share

  constructor(graph, weights) {
    this.#graph = graph;
    this.#weights = weights;
  }

  #quantise(x) {
    if (!this.#quantised.has(x)) {
      const outputs = this.#graph.fresh(3);
      this.#graph.node('DynamicQuantizeLinear', [x], { outputs });
      this.#quantised.set(x, outputs);
    }
    return this.#quantised.get(x);
  }

  /** `values` is `[rows, cols]`, and the result `x` times its transpose. */
  linear(x, name, values, rows, cols) {
    const graph = this.#graph;
    if (this.#weights === 'f32') {
      return graph.node('MatMul', [
        x,
        graph.tensor(name, 'f32', [cols, rows], transpose(values, rows, cols)),
      ]);
    }
    const { scale, data } = quantiseInt8(values);
    const weight = graph.tensor(name, 'int8', [cols, rows], transpose(data, rows, cols));
    const [quantised, xScale, xZero] = this.#quantise(x);
    const product = graph.node('MatMulInteger', [
      quantised,
      weight,
      xZero,
      graph.constant('int8', [], [0]),
    ]);
    const real = graph.node('Cast', [product], { attributes: { to: elementTypes.f32 } });
    return graph.node('Mul', [
      real,
      graph.node('Mul', [xScale, graph.constant('f32', [], [scale])]),
    ]);
  }

  embed(ids, values) {
    const graph = this.#graph;
    const dims = [shape.vocabSize, shape.dModel];
    if (this.#weights === 'f32')
      return graph.node('Gather', [graph.tensor('embedding', 'f32', dims, values), ids]);
    const { scale, data } = quantiseInt8(values);
    const rows = graph.node('Gather', [graph.tensor('embedding', 'int8', dims, data), ids]);
    const real = graph.node('Cast', [rows], { attributes: { to: elementTypes.f32 } });
    return graph.node('Mul', [real, graph.constant('f32', [], [scale])]);
  }
}

function rotaryTables(graph) {
  const half = shape.headDim / 2;
  const tables = [
    new Float32Array(rotaryPositions * half),
    new Float32Array(rotaryPositions * half),
  ];
  for (let position = 0; position < rotaryPositions; ++position) {
    for (let i = 0; i < half; ++i) {
      const angle = position * shape.ropeTheta ** (-i / half);
      tables[0][position * half + i] = Math.cos(angle);
      tables[1][position * half + i] = Math.sin(angle);
    }
  }
  return ['cos', 'sin'].map((name, i) =>
    graph.tensor(name, 'f32', [rotaryPositions, half], tables[i]),
  );
}

/** 0 where a row may look, `[new rows, all rows]`; made once for all layers. */
function causalBias(graph, positions) {
  const last = graph.node('ReduceMax', [positions], { attributes: { keepdims: 0 } });
  const total = graph.node('Add', [last, graph.constant('int64', [], [1])]);
  const keys = graph.node('Range', [
    graph.constant('int64', [], [0]),
    total,
    graph.constant('int64', [], [1]),
  ]);
  const rows = graph.node('Reshape', [positions, graph.integers(-1, 1)]);
  const visible = graph.node('GreaterOrEqual', [rows, keys]);
  return graph.node('Where', [
    visible,
    graph.constant('f32', [], [0]),
    graph.constant('f32', [], [-3e38]),
  ]);
}

function attention(graph, linears, x, layer, { positions, rotary, bias }) {
  const { nHeads, nKvHeads, headDim, dModel } = shape;
  const project = (kind) => {
    const name = `${layer}.${kind}`;
    const [rows, cols] = layerMatrices[kind];
    const drawn = drawMatrix(name, rows, cols);
    const values = kind === 'v' ? drawn : toHalfSplit(drawn, rows, cols);
    const projected = linears.linear(x, name, values, rows, cols);
    const split = graph.node('Reshape', [
      projected,
      graph.integers(1, -1, rows / headDim, headDim),
    ]);
    const heads = graph.node('Transpose', [split], { attributes: { perm: [0, 2, 1, 3] } });
    return kind === 'v'
      ? heads
      : graph.node('RotaryEmbedding', [heads, positions, ...rotary], {
          attributes: { interleaved: 0 },
          domain: contrib,
        });
  };
  const [q, k, v] = ['q', 'k', 'v'].map(project);
  const dims = (rows) => [1, nKvHeads, rows, headDim];
  const [keys, values] = [
    ['key', k],
    ['value', v],
  ].map(([kind, fresh]) => {
    const past = graph.input(`past.${layer}.${kind}`, 'f32', dims('past'));
    const present = `present.${layer}.${kind}`;
    graph.output(present, 'f32', dims('total'));
    return graph.node('Concat', [past, fresh], { attributes: { axis: 2 }, outputs: [present] });
  });
  const stacked = graph.node('Reshape', [q, graph.integers(1, nKvHeads, -1, headDim)]);
  const scores = graph.node('FusedMatMul', [stacked, keys], {
    attributes: { transB: 1, alpha: { f: 1 / Math.sqrt(headDim) } },
    domain: contrib,
  });
  const perHead = graph.node('Reshape', [scores, graph.integers(1, nHeads, -1, 0)]);
  const masked = graph.node('Add', [perHead, bias]);
  const softmax = graph.node('Softmax', [masked], { attributes: { axis: -1 } });
  const weights = graph.node('Reshape', [softmax, graph.integers(1, nKvHeads, -1, 0)]);
  const mixed = graph.node('MatMul', [weights, values]);
  const outputs = graph.node('Reshape', [mixed, graph.integers(1, nHeads, -1, headDim)]);
  const byRow = graph.node('Transpose', [outputs], { attributes: { perm: [0, 2, 1, 3] } });
  const merged = graph.node('Reshape', [byRow, graph.integers(1, -1, dModel)]);
  const [rows, cols] = layerMatrices.o;
  return linears.linear(merged, `${layer}.o`, drawMatrix(`${layer}.o`, rows, cols), rows, cols);
}

function feedForward(graph, linears, x, layer) {
  const linear = (input, kind) => {
    const name = `${layer}.${kind}`;
    const [rows, cols] = layerMatrices[kind];
    return linears.linear(input, name, drawMatrix(name, rows, cols), rows, cols);
  };
  const gate = graph.node('QuickGelu', [linear(x, 'gate')], {
    attributes: { alpha: { f: 1 } },
    domain: contrib,
  });
  return linear(graph.node('Mul', [gate, linear(x, 'up')]), 'down');
}

function buildGraph(weights) {
  const graph = new Graph();
  const linears = new Linears(graph, weights);
  const epsilon = { f: shape.rmsNormEps };
  const gain = (name) => graph.tensor(name, 'f32', [shape.dModel], drawGain(name));

  const ids = graph.input('input_ids', 'int64', [1, 'rows']);
  const positions = graph.input('position_ids', 'int64', [1, 'rows']);
  const shared = { positions, rotary: rotaryTables(graph), bias: causalBias(graph, positions) };

  const embedding = drawMatrix('embedding', shape.vocabSize, shape.dModel);
  let residual = linears.embed(ids, embedding);
  const norm = (x, name) =>
    graph.node('SimplifiedLayerNormalization', [x, gain(name)], {
      attributes: { axis: -1, epsilon },
    });
  const addAndNorm = (x, name) => {
    const [normed, unused, alsoUnused, sum] = [graph.fresh(1)[0], '', '', graph.fresh(1)[0]];
    graph.node('SkipSimplifiedLayerNormalization', [x, residual, gain(name)], {
      attributes: { epsilon },
      outputs: [normed, unused, alsoUnused, sum],
      domain: contrib,
    });
    residual = sum;
    return normed;
  };
  let x = norm(residual, '0.attention_norm');
  for (let layer = 0; layer < shape.nLayers; ++layer) {
    x = addAndNorm(attention(graph, linears, x, layer, shared), `${layer}.ffn_norm`);
    const output = feedForward(graph, linears, x, layer);
    if (layer + 1 < shape.nLayers) {
      x = addAndNorm(output, `${layer + 1}.attention_norm`);
    } else {
      const sum = graph.node('Add', [output, residual]);
      x = norm(
        graph.node('Gather', [sum, graph.integers(-1)], { attributes: { axis: 1 } }),
        'final_norm',
      );
    }
  }
  const logits = linears.linear(x, 'head', embedding, shape.vocabSize, shape.dModel);
  graph.node('Identity', [logits], { outputs: ['logits'] });
  graph.output('logits', 'f32', [1, 1, shape.vocabSize]);
  return graph.model();
}

/** `weights`: `int8` or `f32`. */
export function writeOnnx(path, weights) {
  const { chunks } = buildGraph(weights);
  const file = openSync(path, 'w');
  try {
    for (const chunk of chunks) {
      for (let at = 0; at < chunk.length;) at += writeSync(file, chunk, at);
    }
  } finally {
    closeSync(file);
  }
}
