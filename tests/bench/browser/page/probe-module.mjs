// Two loops as a WebAssembly module, assembled here: what the machine can do at most from inside
// the browser. `stream(begin, end)` reads memory, 128 bytes a turn, into eight sums; `dot(turns)`
// does eight relaxed int8 dot products a turn on registers alone.
const streamStride = 128;
/** Multiplications and additions of `dot`'s turn: 8 products of 16 pairs. */
export const dotOperations = 8 * 16 * 2;

const accumulators = 8;
const types = { i32: 0x7f, v128: 0x7b };

function leb(value) {
  const bytes = [];
  do {
    bytes.push((value & 127) | (value > 127 ? 128 : 0));
    value >>>= 7;
  } while (value > 0);
  return bytes;
}

const counted = (items) => [...leb(items.length), ...items.flat()];
const section = (id, content) => [id, ...leb(content.length), ...content];
const simd = (opcode, ...operands) => [0xfd, ...leb(opcode), ...operands];

const get = (local) => [0x20, ...leb(local)];
const set = (local) => [0x21, ...leb(local)];
const i32 = (value) => [0x41, ...signedLeb(value)];
const i32Add = [0x6a];
const i32LessUnsigned = [0x49];
const i32x4Add = simd(0xae);
const relaxedDot = simd(0x113);
const splat = simd(0x0f);
const load = (offset) => simd(0x00, 4, ...leb(offset));
const extractLane0 = simd(0x1b, 0);
const loop = (body) => [0x03, 0x40, ...body, 0x0d, 0, 0x0b]; // `body` leaves the condition

function signedLeb(value) {
  const bytes = [];
  for (;;) {
    const low = value & 127;
    value >>= 7;
    if ((value === 0 && !(low & 64)) || (value === -1 && low & 64)) return [...bytes, low];
    bytes.push(low | 128);
  }
}

const each = (instructions) =>
  Array.from({ length: accumulators }, (_, i) => instructions(i)).flat();

/** All sums added, so that none can be left out. */
const total = (first) => [
  ...get(first),
  ...each((i) => (i === 0 ? [] : [...get(first + i), ...i32x4Add])),
  ...extractLane0,
];

// Locals after the parameters (begin, end): the sums.
const stream = [
  ...loop([
    ...each((i) => [...get(2 + i), ...get(0), ...load(16 * i), ...i32x4Add, ...set(2 + i)]),
    ...get(0),
    ...i32(streamStride),
    ...i32Add,
    ...set(0),
    ...get(0),
    ...get(1),
    ...i32LessUnsigned,
  ]),
  ...total(2),
];

// Locals after the parameter (turns): both operands, the sums, the turn.
const dot = [
  ...get(0),
  ...splat,
  ...set(1),
  ...i32(3),
  ...splat,
  ...set(2),
  ...loop([
    ...each((i) => [...get(1), ...get(2), ...get(3 + i), ...relaxedDot, ...set(3 + i)]),
    ...get(11),
    ...i32(1),
    ...i32Add,
    ...set(11),
    ...get(11),
    ...get(0),
    ...i32LessUnsigned,
  ]),
  ...total(3),
];

const text = (string) => counted([...new TextEncoder().encode(string)]);
const code = (locals, body) => {
  const content = [...counted(locals), ...body, 0x0b];
  return [...leb(content.length), ...content];
};

/** Bytes of the module; it imports `env.memory` of at least `pages` pages. */
export function probeModule(pages) {
  return Uint8Array.from([
    0x00,
    0x61,
    0x73,
    0x6d,
    1,
    0,
    0,
    0,
    ...section(
      1,
      counted([
        [0x60, ...counted([types.i32, types.i32]), ...counted([types.i32])],
        [0x60, ...counted([types.i32]), ...counted([types.i32])],
      ]),
    ),
    ...section(2, counted([[...text('env'), ...text('memory'), 0x02, 0x00, ...leb(pages)]])),
    ...section(3, counted([0, 1])),
    ...section(
      7,
      counted([
        [...text('stream'), 0x00, 0],
        [...text('dot'), 0x00, 1],
      ]),
    ),
    ...section(
      10,
      counted([
        code([[accumulators, types.v128]], stream),
        code(
          [
            [2 + accumulators, types.v128],
            [1, types.i32],
          ],
          dot,
        ),
      ]),
    ),
  ]);
}
