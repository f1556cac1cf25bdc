// The figures of the Lab. See README.md.
export * from './types.js';

export {
  AttentionStore,
  evidenceBytes,
  DEFAULT_BUDGET_BYTES,
  type AttentionStoreOptions,
} from './attention-store.js';
export { HEAD_SCORES, meanScores, type HeadScore, type HeadScores } from './head-stats.js';

export { AttentionMap, type AttentionMapProps } from './attention-map.js';
export { MapControls } from './map-controls.js';
export { Thumbnails, type ThumbnailsProps } from './thumbnails.js';
export { TokenWeights, type TokenWeightsProps } from './token-weights.js';
export { HeadTable, type HeadTableProps } from './head-table.js';

export * from './work-series.js';
export type { WorkAxes } from './work-scales.js';
export { WorkChart, WorkControls, type WorkChartProps } from './work-chart.js';
export { WorkTable, type WorkTableProps } from './work-table.js';

export { mapSvg, thumbnailsSvg, workSvg, svgBlob, pngBlob } from './export.js';
export { csv, mapCsv, headTableCsv, workCsv } from './csv.js';
