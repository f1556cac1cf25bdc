// What the heads attend to: all of them small, one of them large, its weights on the text, and
// scores.
import { batch, computed, signal, useSignalEffect } from '@preact/signals';
import {
  AttentionMap,
  HeadTable,
  mapCsv,
  MapControls,
  mapSvg,
  Thumbnails,
  thumbnailsSvg,
  TokenWeights,
  type AttentionMatrix,
  type AttentionStore,
  type Cell,
  type HeadRef,
  type MapStyle,
} from '../figures/index.js';
import { visibleToken } from '../format.js';
import { byteSize, numbers, text } from '../i18n/index.js';
import { colourMap } from '../settings.js';
import { recomputeAllLayers, recomputeLayer } from '../state/forward.js';
import {
  announce,
  attention,
  busy,
  head,
  isLive,
  pinnedPosition,
  position,
  rows,
} from '../state/store.js';
import { Button, ProblemAt } from '../ui/controls.jsx';
import { JobProgress } from '../ui/job-progress.jsx';
import { Segments } from '../ui/segments.jsx';
import { sight } from '../ui/sight.js';
import { SaveFigure, SaveTable } from './save.jsx';

const look = signal<Omit<MapStyle, 'palette'>>({ scale: 'sqrt', hideSink: false });
const pinned = signal<Cell | null>(null);
const ofRow = signal(false);

const view = sight();
const shownRows = view.follow(rows);
const shownPosition = view.follow(position);
const revision = view.follow(computed(() => attention.value?.revision.value));

const mapStyle = computed<MapStyle>(() => ({ ...look.value, palette: colourMap.value }));
const tokens = computed(() => shownRows.value.map((row) => visibleToken(row.text)));

/** Pinning a cell of the map selects its query for the whole page. */
function pin(cell: Cell | null): void {
  // Together: a pinned cell whose query is not the page's position is released.
  batch(() => {
    pinned.value = cell;
    pinnedPosition.value = cell ? cell.query : null;
  });
}

function Large({
  store,
  matrix,
  shown,
}: {
  readonly store: AttentionStore;
  readonly matrix: AttentionMatrix;
  readonly shown: HeadRef;
}) {
  const messages = text.value.figures;
  const figure = { matrix, head: shown, tokens: tokens.value, mapStyle: mapStyle.value, messages };
  const name = `attention-layer${shown.layer}-head${shown.head}`;
  return (
    <div class="figure-block">
      <div class="figure-head">
        <h3>{messages.layerHead(shown.layer, shown.head)}</h3>
        <SaveFigure name={name} svg={() => mapSvg(figure)}>
          <SaveTable name={name} csv={() => mapCsv(matrix, tokens.value)} />
        </SaveFigure>
      </div>
      <AttentionMap
        {...figure}
        source={store.source(shown.layer)}
        pinned={pinned.value}
        selected={pinnedPosition.value === null ? undefined : shownPosition.value}
        onPin={pin}
        onAnnounce={announce}
        {...(isLive.value ? { onRecompute: () => void recomputeLayer(shown.layer) } : {})}
        recomputing={busy.value?.kind === 'recompute'}
      />
      <JobProgress
        kind="recompute"
        label={({ done, total }) =>
          text.value.attention.recomputing(shown.layer, numbers.value.percentDone(done, total))
        }
      />
    </div>
  );
}

function Scores({ store, shown }: { readonly store: AttentionStore; readonly shown: HeadRef }) {
  const t = text.value.attention;
  const messages = text.value.figures;
  // The scores of the same layer change when rows come in or are recomputed.
  void revision.value;
  const at = shownPosition.value;
  const { layer } = shown;
  const row = ofRow.value ? at : undefined;
  const scores = store.scores(layer, row);
  return (
    <div class="figure-block">
      <div class="figure-head">
        <h3>
          {t.scores} <span class="muted">· {messages.layer(layer)}</span>
        </h3>
        <Segments
          legend={t.scoresOf}
          value={ofRow.value ? 'row' : 'all'}
          onChange={(value) => (ofRow.value = value === 'row')}
          options={[
            { value: 'all', label: t.allRows },
            { value: 'row', label: t.thisRow },
          ]}
        />
      </div>
      {scores ? (
        <HeadTable
          layer={layer}
          scores={scores}
          of={
            row === undefined
              ? { rows: store.rowsScored(layer), length: store.length }
              : { place: { position: at, token: tokens.value[at] ?? '' } }
          }
          selected={shown}
          onSelect={(chosen) => (head.value = chosen)}
          messages={messages}
        />
      ) : (
        <p class="muted">{messages.weights.incomingUnknown}</p>
      )}
    </div>
  );
}

/** Offered where tiles are incomplete. */
function RecomputeAll({ store }: { readonly store: AttentionStore }) {
  const t = text.value.attention;
  // A prompt beyond the limit of capture leaves every layer incomplete, the map on the right too.
  void revision.value;
  return (
    <>
      {store.partialLayers() > 0 && isLive.value && (
        <div class="buttons">
          <Button title={t.recomputeAllHint} onClick={recomputeAllLayers}>
            {t.recomputeAll}
          </Button>
        </div>
      )}
      <JobProgress
        kind="recomputeAll"
        label={({ done, total }) => t.recomputingAll(numbers.value.percentDone(done, total))}
      />
    </>
  );
}

function Figures({ store }: { readonly store: AttentionStore }) {
  const t = text.value.attention;
  const messages = text.value.figures;
  // The revision of the store moves when it changes.
  void revision.value;
  // Another model has other heads.
  const { layer } = head.value;
  const known =
    layer < store.nLayers && (head.value.head === 'mean' || head.value.head < store.nHeads);
  const shown: HeadRef = known ? head.value : { layer: 0, head: 0 };
  const at = shownPosition.value;
  const usage = store.usage();
  return (
    <>
      <div class="attention-grid">
        <div class="figure-block">
          <div class="figure-head">
            <h3>{t.all}</h3>
            <SaveFigure
              name="attention-heads"
              svg={() =>
                thumbnailsSvg({
                  store,
                  mapStyle: mapStyle.value,
                  messages,
                })
              }
            />
          </div>
          <Thumbnails
            store={store}
            mapStyle={mapStyle.value}
            selected={shown}
            onSelect={(chosen) => (head.value = chosen)}
            messages={messages}
            onAnnounce={announce}
          />
          <RecomputeAll store={store} />
          <p class="muted small">{t.memory(byteSize(usage.bytes), byteSize(usage.budgetBytes))}</p>
          <MapControls
            mapStyle={mapStyle.value}
            messages={messages}
            onChange={({ palette, ...other }) => {
              colourMap.value = palette;
              look.value = other;
            }}
          />
        </div>
        <Large store={store} matrix={store.matrix(shown)} shown={shown} />
      </div>
      <div class="figure-block">
        <h3>
          {t.onText} <span class="muted">· {messages.layerHead(shown.layer, shown.head)}</span>
        </h3>
        <TokenWeights
          tokens={tokens.value}
          selected={at}
          outgoing={store.outgoing(shown, at)}
          incoming={store.incoming(shown, at)}
          head={shown}
          mapStyle={mapStyle.value}
          onSelect={(chosen) => (pinnedPosition.value = chosen)}
          messages={messages}
          onAnnounce={announce}
        />
      </div>
      <Scores store={store} shown={shown} />
    </>
  );
}

export function AttentionSection() {
  const t = text.value.attention;
  const store = attention.value;
  // The layer in focus keeps its rows when memory runs out.
  useSignalEffect(() =>
    attention.value?.focus(Math.min(head.value.layer, attention.value.nLayers - 1)),
  );
  // A pinned cell goes with its position: Esc and "follow the newest" release both.
  useSignalEffect(() => {
    if (pinned.value && pinned.value.query !== pinnedPosition.value) pinned.value = null;
  });
  return (
    <section class="block" aria-labelledby="attention-heading" id="attention" ref={view.ref}>
      <h2 id="attention-heading">{t.heading}</h2>
      <p class="about">{t.about}</p>
      <ProblemAt site="attention" />
      {store && shownRows.value.length > 0 ? (
        <Figures store={store} />
      ) : (
        <p class="muted">{t.empty}</p>
      )}
    </section>
  );
}
