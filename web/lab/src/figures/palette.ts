// Colour ramps of 256 entries as 8-bit sRGB.
//
// cividis: Nunez, Anderton, Renslow, "Optimizing colormaps with consideration for color vision
// deficiency", 2018; it reads the same with and without red-green colour blindness. inferno: Smith
// and van der Walt, 2015. Both are the published tables of matplotlib, six hexadecimal digits an
// entry. greys is linear from white to black. Lightness is monotonic in all three.
import type { Palette } from './types.js';

/** Entries of every ramp. */
export const LEVELS = 256;

const cividis = `
  00224e00234f00245100255300255400265600275800285900285b00295d002a5f002a61002b62002c64002c66002d68
  002e6a002e6c002f6d00306f0030700031700031710132710533710833700c34700f357012357014367016377018376f
  1a386f1c396f1e3a6f203a6f213b6e233c6e243c6e263d6e273e6e293f6e2a3f6d2b406d2d416d2e416d2f426d31436d
  32436d33446d34456c35456c36466c38476c39486c3a486c3b496c3c4a6c3d4a6c3e4b6c3f4c6c404c6c414d6c424e6c
  434e6c444f6c45506c46516c47516c48526c49536c4a536c4b546c4c556c4d556c4e566c4f576c50576c51586d52596d
  535a6d545a6d555b6d555c6d565c6d575d6d585e6d595e6e5a5f6e5b606e5c616e5d616e5e626e5e636f5f636f60646f
  61656f62656f636670646770656870656870666970676a71686a71696b716a6c716b6d726c6d726c6e726d6f726e6f73
  6f70737071737172747272747273747374757474757575757676767777767777777878777979777a7a787b7a787c7b78
  7d7c787e7c787e7d787f7e78807f78817f788280798381798482798582798683798784788885788985788a86788b8778
  8c88788d88788e89788f8a78908b78918b78928c78928d78938e78948e77958f779690779791779892779992779a9376
  9b94769c95769d95769e96769f9775a09875a19975a29975a39a74a49b74a59c74a69c74a79d73a89e73a99f73aaa073
  aba072aca172ada272aea371afa471b0a571b1a570b3a670b4a76fb5a86fb6a96fb7a96eb8aa6eb9ab6dbaac6dbbad6d
  bcae6cbdae6cbeaf6bbfb06bc0b16ac1b26ac2b369c3b369c4b468c5b568c6b667c7b767c8b866c9b965cbb965ccba64
  cdbb63cebc63cfbd62d0be62d1bf61d2c060d3c05fd4c15fd5c25ed6c35dd7c45cd9c55cdac65bdbc75adcc859ddc858
  dec958dfca57e0cb56e1cc55e2cd54e4ce53e5cf52e6d051e7d150e8d24fe9d34eead34cebd44bedd54aeed649efd748
  f0d846f1d945f2da44f3db42f5dc41f6dd3ff7de3ef8df3cf9e03afbe138fce236fde334fee434fee535fee636fee838`;

const inferno = `
  00000401000501010601010802010a02020c02020e03021004031204031405041706041907051b08051d09061f0a0722
  0b07240c08260d08290e092b10092d110a30120a32140b34150b37160b39180c3c190c3e1b0c411c0c431e0c451f0c48
  210c4a230c4c240c4f260c51280b53290b552b0b572d0b592f0a5b310a5c320a5e340a5f3609613809623909633b0964
  3d09653e0966400a67420a68440a68450a69470b6a490b6a4a0c6b4c0c6b4d0d6c4f0d6c510e6c520e6d540f6d550f6d
  57106e59106e5a116e5c126e5d126e5f136e61136e62146e64156e65156e67166e69166e6a176e6c186e6d186e6f196e
  71196e721a6e741a6e751b6e771c6d781c6d7a1d6d7c1d6d7d1e6d7f1e6c801f6c82206c84206b85216b87216b88226a
  8a226a8c23698d23698f24699025689225689326679526679727669827669a28659b29649d29649f2a63a02a63a22b62
  a32c61a52c60a62d60a82e5fa92e5eab2f5ead305dae305cb0315bb1325ab3325ab43359b63458b73557b93556ba3655
  bc3754bd3853bf3952c03a51c13a50c33b4fc43c4ec63d4dc73e4cc83f4bca404acb4149cc4248ce4347cf4446d04545
  d24644d34743d44842d54a41d74b3fd84c3ed94d3dda4e3cdb503bdd513ade5238df5337e05536e15635e25734e35933
  e45a31e55c30e65d2fe75e2ee8602de9612bea632aeb6429eb6628ec6726ed6925ee6a24ef6c23ef6e21f06f20f1711f
  f1731df2741cf3761bf37819f47918f57b17f57d15f67e14f68013f78212f78410f8850ff8870ef8890cf98b0bf98c0a
  f98e09fa9008fa9207fa9407fb9606fb9706fb9906fb9b06fb9d07fc9f07fca108fca309fca50afca60cfca80dfcaa0f
  fcac11fcae12fcb014fcb216fcb418fbb61afbb81dfbba1ffbbc21fbbe23fac026fac228fac42afac62df9c72ff9c932
  f9cb35f8cd37f8cf3af7d13df7d340f6d543f6d746f5d949f5db4cf4dd4ff4df53f4e156f3e35af3e55df2e661f2e865
  f2ea69f1ec6df1ed71f1ef75f1f179f2f27df2f482f3f586f3f68af4f88ef5f992f6fa96f8fb9af9fc9dfafda1fcffa4`;

function parse(table: string): Uint8Array {
  const digits = table.replace(/\s/g, '');
  return Uint8Array.from({ length: 3 * LEVELS }, (_, i) =>
    parseInt(digits.slice(2 * i, 2 * i + 2), 16),
  );
}

const ramps: Readonly<Record<Palette, Uint8Array>> = {
  cividis: parse(cividis),
  inferno: parse(inferno),
  greys: Uint8Array.from({ length: 3 * LEVELS }, (_, i) => LEVELS - 1 - Math.floor(i / 3)),
};

/** Red, green and blue of a level, each 0..255. */
export function rampColour(palette: Palette, level: number): readonly [number, number, number] {
  const ramp = ramps[palette];
  return [ramp[3 * level]!, ramp[3 * level + 1]!, ramp[3 * level + 2]!];
}

/** As CSS, `#rrggbb`. */
export function rampCss(palette: Palette, level: number): string {
  return `#${rampColour(palette, level)
    .map((channel) => channel.toString(16).padStart(2, '0'))
    .join('')}`;
}

/** Sixteen equal steps of the ramp: no eye tells them from all 256 levels. */
export const rampStops = (palette: Palette): string[] =>
  Array.from({ length: 17 }, (_, i) => rampCss(palette, Math.min(LEVELS - 1, i * 16)));

/** The ramp as a CSS gradient. */
export const rampGradient = (palette: Palette): string =>
  `linear-gradient(to right, ${rampStops(palette).join(', ')})`;

// Which end of a word is its first byte decides how a colour is put into one.
const littleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

/** The ramp as opaque pixels, ready to be written through a `Uint32Array` over image data. */
export function rampPixels(palette: Palette): Uint32Array {
  return Uint32Array.from({ length: LEVELS }, (_, level) => {
    const [r, g, b] = rampColour(palette, level);
    return littleEndian
      ? ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0
      : ((r << 24) | (g << 16) | (b << 8) | 255) >>> 0;
  });
}
