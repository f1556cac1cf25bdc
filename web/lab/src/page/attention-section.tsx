// Where the heads look: all of them small, one of them large, its weights on the text, and scores.
import { batch, computed, signal, useSignalEffect } from '@preact/signals';
import {
  AttentionMap,
  HeadTable,
  mapCsv,
  MapControls,
  mapSvg,
  readTheme,
  Thumbnails,
  thumbnailsSvg,
  TokenWeights,
  visibleToken,
  type AttentionMatrix,
  type AttentionStore,
  type Cell,
  type HeadRef,
  type MapStyle,
} from '../figures/index.js';
import { byteSize, percentDone } from '../format.js';
import { text } from '../i18n/index.js';
import { colourMap, isDark } from '../settings.js';
import { recomputeLayer } from '../state/forward.js';
import {
  announce,
  attention,
  busy,
  isLive,
  pinnedPosition,
  position,
  rows,
} from '../state/store.js';
import { ProblemAt, Segments } from '../ui/controls.jsx';
import { JobProgress } from '../ui/job-progress.jsx';
import { sight } from '../ui/while-seen.js';
import { SaveFigure, SaveTable } from './save.jsx';

const head = signal<HeadRef>({ layer: 0, head: 0 });
const look = signal<Omit<MapStyle, 'palette'>>({ scale: 'sqrt', hideSink: false });
const pinned = signal<Cell | null>(null);
const ofRow = signal(false);

const view = sight();
const shownRows = view.follow(rows);
const shownPosition = view.follow(position);
const revision = view.follow(computed(() => attention.value?.revision.value));

const mapStyle = computed<MapStyle>(() => ({ ...look.value, palette: colourMap.value }));
const tokens = computed(() => shownRows.value.map((row) => visibleToken(row.text)));
const theme = computed(() => (isDark.value ? 'dark' : 'light'));

/** Pinning a cell of the map is choosing its query for the whole page. */
function pin(cell: Cell | null): void {
  // Together: a pinned cell whose query is not the page's position is let go.
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
        <SaveFigure
          name={name}
          svg={() => mapSvg({ ...figure, theme: readTheme(document.documentElement) })}
        >
          <SaveTable name={name} csv={() => mapCsv(matrix, tokens.value)} />
        </SaveFigure>
      </div>
      <AttentionMap
        {...figure}
        source={store.source(shown.layer)}
        theme={theme.value}
        pinned={pinned.value}
        onPin={pin}
        onAnnounce={announce}
        {...(isLive.value ? { onRecompute: () => void recomputeLayer(shown.layer) } : {})}
        recomputing={busy.value?.kind === 'recompute'}
      />
      <JobProgress
        kind="recompute"
        label={({ done, total }) =>
          text.value.attention.recomputing(shown.layer, percentDone(done, total))
        }
      />
    </div>
  );
}

function Scores({ store, shown }: { readonly store: AttentionStore; readonly shown: HeadRef }) {
  const t = text.value.attention;
  const messages = text.value.figures;
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
              ? { rows: shownRows.value.length }
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

function Figures({ store }: { readonly store: AttentionStore }) {
  const t = text.value.attention;
  const messages = text.value.figures;
  // The store tells by its revision that it has changed.
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
                  theme: readTheme(document.documentElement),
                })
              }
            />
          </div>
          <Thumbnails
            store={store}
            mapStyle={mapStyle.value}
            theme={theme.value}
            selected={shown}
            onSelect={(chosen) => (head.value = chosen)}
            messages={messages}
            onAnnounce={announce}
          />
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
  // What is looked at is dropped last when memory runs out.
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
