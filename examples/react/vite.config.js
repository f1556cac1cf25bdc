// With these headers a page is cross-origin isolated, and kvlens uses threads.
const headers = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

export default {
  // The development server would otherwise bundle kvlens and lose its worker and .wasm files.
  optimizeDeps: { exclude: ['kvlens'] },
  server: { headers },
  preview: { headers },
};
