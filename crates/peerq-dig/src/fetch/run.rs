//! One fetch from start to end: staging, manifest, what is there already, the download of the rest (HOST-D1 to D6).

use std::sync::Arc;
use std::time::Duration;

use dig_download::{
    DownloadConfig, DownloadError, DownloadEvent, DownloadHandle, DownloadOptions, Downloader, ProviderLocator,
    download_key,
};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::adapter::{Adapter, ENGINE_CAP};
use super::error::FetchError;
use super::handle::Control;
use super::holders::Holders;
use super::layout::{MissingLayout, ONE_CHUNK_PER_RANGE};
use super::ledger::Ledger;
use super::manifest_fetch::fetch_manifest;
use super::progress::{FetchState, Progress, RateMeter};
use super::report::FetchReport;
use super::scorebook::Scorebook;
use super::sink::StagingSink;
use super::staging::Staging;
use super::state::SeededState;
use super::transport::MeasuringTransport;
use super::verify::ChunkVerifier;
use super::{FetchOptions, Policy};
use crate::content::Manifest;
use crate::pool::Pool;

/// How often progress is published.
const TICK: Duration = Duration::from_millis(100);

/// How often the engine asks for new holders. The answer comes from memory, so that a holder that confirms late joins
/// soon; the look-ups behind it keep their own, slower pace.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Failures per chunk after which the engine gives up. Patience counts as failure too, so there is more of it than in
/// the engine's default; with [`BACKOFF_MAX`] a single peer has some two minutes. Higher: a hopeless fetch ends later. Lower: an
/// unlucky one ends early.
const RANGE_ATTEMPTS: usize = 64;

/// The longest time for which the engine hides a peer that failed. Whom to ask after failures is the selector's to say, and
/// ranges of one peer that end together count as so many failures in a row. Higher: after a stall of our own the good peers,
/// which had most in flight, are hidden while bad ones are asked. Lower: a dead peer is offered more often.
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// A request counts as receiving if its last byte is younger than this.
const RECEIVING: Duration = Duration::from_secs(10);

/// Why a running engine is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// The caller wants no more.
    Cancelled,
    /// Nothing comes any more.
    Stuck,
}

/// Everything one fetch needs.
pub(super) struct Run {
    pub(super) pool: Arc<Pool>,
    pub(super) locator: Option<Arc<dyn ProviderLocator>>,
    pub(super) options: FetchOptions,
    pub(super) commands: mpsc::UnboundedReceiver<Control>,
    pub(super) progress: watch::Sender<Progress>,
    pub(super) paused: bool,
}

impl Run {
    /// Runs the fetch, and publishes that it is done whatever the result.
    pub(super) async fn run(mut self) -> Result<FetchReport, FetchError> {
        let result = self.fetch().await;
        self.progress.send_modify(|p| {
            p.state = FetchState::Done;
            p.active.clear();
        });
        result
    }

    async fn fetch(&mut self) -> Result<FetchReport, FetchError> {
        let started = Instant::now();
        let id = self.options.id;
        let selector = match &self.options.policy {
            Policy::Peerq(selector) => Some(selector.clone()),
            Policy::RoundRobin => None,
        };
        let book = Arc::new(Scorebook::new(selector));
        let (output, overwrite) = (self.options.output.clone(), self.options.overwrite);
        let staging = Arc::new(blocking(move || Staging::open(&output, &id, overwrite)).await??);

        let (holders, _finder) =
            Holders::search(id, self.pool.clone(), &self.options.peers, self.locator.clone(), book.clone());
        let manifest = Arc::new(self.manifest(&staging, &holders, &book).await?);
        let total_length = manifest.total_length();

        let present = self.present(&staging, &manifest).await?;
        let layout = Arc::new(MissingLayout::new(manifest, &present));
        let missing = layout.total();
        let resumed = total_length - missing;
        self.progress.send_modify(|p| {
            (p.bytes_total, p.bytes_resumed, p.bytes_done) = (Some(total_length), resumed, resumed);
        });
        let sink = Arc::new(StagingSink::new(staging.clone(), layout.clone()));
        if missing == 0 {
            blocking(move || staging.promote(total_length)).await??;
        } else {
            blocking(move || staging.check_space(missing)).await??;
            self.download(&holders, layout, &book, sink).await?;
        }
        Ok(FetchReport {
            id,
            output: self.options.output.clone(),
            total_length,
            bytes_from_network: missing,
            bytes_resumed: resumed,
            elapsed: started.elapsed(),
            peers: book.peers(),
        })
    }

    /// The manifest, from the earlier attempt or from a holder.
    async fn manifest(
        &mut self,
        staging: &Arc<Staging>,
        holders: &Arc<Holders>,
        book: &Arc<Scorebook>,
    ) -> Result<Manifest, FetchError> {
        let id = self.options.id;
        let reader = staging.clone();
        if let Some(manifest) = blocking(move || reader.cached_manifest(&id)).await? {
            return Ok(manifest);
        }
        let (pool, timeout) = (self.pool.clone(), self.options.range_timeout);
        let found = self.cancellable(fetch_manifest(id, &pool, holders, book, timeout)).await?;
        let manifest = found.ok_or_else(|| failed(self.options.id, holders, book, 0, 0))?;
        let (writer, copy) = (staging.clone(), manifest.clone());
        blocking(move || writer.keep_manifest(&copy)).await??;
        Ok(manifest)
    }

    /// Which chunks an earlier attempt left.
    async fn present(&mut self, staging: &Arc<Staging>, manifest: &Arc<Manifest>) -> Result<Vec<bool>, FetchError> {
        let (staging, manifest, progress) = (staging.clone(), manifest.clone(), self.progress.clone());
        progress.send_modify(|p| {
            p.state = FetchState::Verifying;
            p.bytes_total = Some(manifest.total_length());
        });
        // The flag stops the blocking task when this future is dropped.
        let wanted = Arc::new(());
        let watched = Arc::downgrade(&wanted);
        let check = blocking(move || {
            staging.present_chunks(&manifest, |checked| {
                progress.send_modify(|p| p.bytes_done = checked);
                watched.strong_count() > 0
            })
        });
        let present = self.cancellable(check).await???;
        drop(wanted);
        Ok(present)
    }

    /// Runs `work` unless the caller cancels; remembers a pause for later.
    async fn cancellable<T>(&mut self, work: impl Future<Output = T>) -> Result<T, FetchError> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                command = self.commands.recv() => match command {
                    Some(Control::Pause) => self.paused = true,
                    Some(Control::Resume) => self.paused = false,
                    Some(Control::Cancel) | None => return Err(FetchError::Cancelled),
                }
            }
        }
    }

    async fn download(
        &mut self,
        holders: &Arc<Holders>,
        layout: Arc<MissingLayout>,
        book: &Arc<Scorebook>,
        sink: Arc<StagingSink>,
    ) -> Result<(), FetchError> {
        let content = self.options.id.content();
        let ledger = Arc::new(Ledger::new(layout.clone(), book.clone(), content));
        let mut config = DownloadConfig::default();
        config.window = ONE_CHUNK_PER_RANGE;
        config.max_resource_size = u64::MAX;
        config.verify_whole_resource = false;
        // The transport has its own, which knows what was seen until then.
        config.range_timeout = None;
        config.refresh_interval = Some(REFRESH_INTERVAL);
        let patient = match &self.options.policy {
            Policy::RoundRobin => false,
            Policy::Peerq(selector) => {
                let adapter = Adapter::new(ledger.clone(), holders.clone(), selector.clone(), content);
                config.selector = Some(Arc::new(adapter));
                config.max_concurrency = ENGINE_CAP;
                config.max_inflight_per_source = ENGINE_CAP;
                config.max_range_attempts = RANGE_ATTEMPTS;
                config.max_backoff = BACKOFF_MAX;
                true
            }
        };
        let transport = MeasuringTransport::new(
            self.pool.clone(),
            ledger.clone(),
            holders.clone(),
            self.options.range_timeout,
            patient,
        );
        let key = download_key(&content);
        let seed = SeededState::new(key, self.options.id.to_string(), layout.chunk_lens());
        let verifier = ChunkVerifier::new(ledger.clone());
        let downloader =
            Downloader::new(holders.clone(), Arc::new(transport), Arc::new(verifier), Arc::new(seed), config);
        let options = DownloadOptions { start_paused: self.paused, resume_key: None };
        let mut engine = downloader.download(content, sink.clone(), options);
        let stopped = self.follow(&mut engine, &ledger, holders, book).await;
        match engine.join().await {
            Ok(_) => Ok(()),
            Err(_) if stopped == Some(Stop::Stuck) => {
                Err(failed(self.options.id, holders, book, sink.missing(), sink.chunks()))
            }
            Err(_) if stopped == Some(Stop::Cancelled) => Err(FetchError::Cancelled),
            Err(e) => Err(self.ended(e, &sink, holders, book)),
        }
    }

    /// Drains the engine's events, which would otherwise block it, passes commands on and publishes progress, until the
    /// engine's last event. Returns why it stopped the engine, if it did.
    async fn follow(
        &mut self,
        engine: &mut DownloadHandle,
        ledger: &Ledger,
        holders: &Holders,
        book: &Scorebook,
    ) -> Option<Stop> {
        let mut tick = tokio::time::interval(TICK);
        let mut meter = RateMeter::default();
        let mut stopped = None;
        let mut alive = Instant::now();
        let resumed = self.progress.borrow().bytes_resumed;
        self.progress.send_modify(|p| {
            p.state = if self.paused { FetchState::Paused } else { FetchState::Downloading };
        });
        loop {
            tokio::select! {
                event = engine.next_event() => match event {
                    None => break,
                    Some(DownloadEvent::Paused) => self.progress.send_modify(|p| p.state = FetchState::Paused),
                    Some(DownloadEvent::Resumed) => self.progress.send_modify(|p| p.state = FetchState::Downloading),
                    Some(DownloadEvent::RangeCompleted { progress, .. }) => {
                        alive = Instant::now();
                        self.progress.send_modify(|p| p.bytes_done = resumed + progress.bytes_done);
                    }
                    Some(DownloadEvent::RangeFailed { range, provider, reason }) => {
                        tracing::debug!(id = %self.options.id, range, %provider, %reason, "range failed");
                    }
                    Some(_) => {}
                },
                command = self.commands.recv(), if stopped.is_none() => match command {
                    Some(Control::Pause) => engine.pause(),
                    Some(Control::Resume) => engine.resume(),
                    Some(Control::Cancel) | None => {
                        stopped = Some(Stop::Cancelled);
                        engine.cancel();
                    }
                },
                now = tick.tick() => {
                    if self.progress.borrow().state == FetchState::Paused || ledger.is_receiving(RECEIVING) {
                        alive = now;
                    }
                    if stopped.is_none() && now.saturating_duration_since(alive) > self.options.give_up_after {
                        stopped = Some(Stop::Stuck);
                        engine.cancel();
                    }
                    self.progress.send_modify(|p| {
                        p.holders = holders.confirmed().len();
                        p.bytes_per_second = meter.rate(now, p.bytes_done);
                        p.observe(Some(ledger), book);
                    });
                }
            }
        }
        self.progress.send_modify(|p| p.observe(None, book));
        stopped
    }

    /// The engine's error in terms of what to do about it.
    fn ended(&self, error: DownloadError, sink: &StagingSink, holders: &Holders, book: &Scorebook) -> FetchError {
        if let Some(fault) = sink.take_fault() {
            return fault;
        }
        match error {
            DownloadError::NoProviders { .. } | DownloadError::NotFound { .. } => {
                failed(self.options.id, holders, book, sink.missing(), sink.chunks())
            }
            other => FetchError::Engine { reason: other.to_string() },
        }
    }
}

/// Why nobody could deliver.
fn failed(id: crate::content::FileId, holders: &Holders, book: &Scorebook, missing: usize, total: usize) -> FetchError {
    if holders.is_empty() {
        return FetchError::NoHolders { id };
    }
    if holders.all_refused() {
        return FetchError::UnknownId { id, reasons: holders.failures() };
    }
    FetchError::AllHoldersFailed { id, missing, total, reasons: book.failures() }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, FetchError> {
    tokio::task::spawn_blocking(work).await.map_err(|e| FetchError::Engine { reason: format!("disk task ended: {e}") })
}
