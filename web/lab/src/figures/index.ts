// The figures of the Lab. See README.md.
import { en } from './messages.en.js';
import { ru } from './messages.ru.js';

export const figureMessages = { en, ru } as const;
export type { FigureMessages, Place } from './messages.js';
export * from './types.js';
export { visibleToken, exactDecimal, formatNumber } from './format.js';
export { readTheme, defaultTheme, type FigureTheme } from './theme.js';

export {
  AttentionStore,
  evidenceBytes,
  DEFAULT_BUDGET_BYTES,
  type AttentionStoreOptions,
} from './attention-store.js';
export { HEAD_SCORES, meanScores, type HeadScore, type HeadScores } from './head-stats.js';

export { AttentionMap, type AttentionMapProps } from './attention-map.js';
export { MapControls } from './controls.js';
export { Thumbnails, type ThumbnailsProps } from './thumbnails.js';
export { TokenWeights, type TokenWeightsProps } from './token-weights.js';
export { HeadTable, type HeadTableProps } from './head-table.js';

export * from './work-series.js';
export type { WorkAxes } from './work-scales.js';
export { WorkChart, WorkControls, type WorkChartProps } from './work-chart.js';
export { WorkTable, type WorkTableProps } from './work-table.js';

export { mapSvg, thumbnailsSvg, workSvg, svgBlob, pngBlob } from './svg.js';
export { csv, mapCsv, headTableCsv, workCsv } from './csv.js';
