//! Replays a recording: every decision derived anew from the seed and the facts before it, and compared.

use dig_nat::PeerId;
use dig_peer_selector::{
    ClockSource, OutcomeKind, PeerSelector, PoolEvent, RangePlanDelta, SelectorConfig, TransferOutcome,
};

use super::step::{content_of, gave_of};
use super::{Gave, Header, Recording, Step, Told};

/// What a replay found.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Decisions derived again.
    pub decisions: usize,
    /// Facts told.
    pub facts: usize,
    /// The first decision that came out otherwise; nothing after it was replayed, since it would rest on another past.
    pub difference: Option<Difference>,
    /// Line at which the recording is torn, if it is.
    pub torn_at: Option<usize>,
}

/// A decision that came out otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its line in the file.
    pub line: usize,
    /// Its moment, microseconds.
    pub at_us: u64,
    /// What the recording says.
    pub recorded: Vec<Gave>,
    /// What came out now.
    pub replayed: Vec<Gave>,
}

impl std::fmt::Display for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} decisions and {} facts replayed", self.decisions, self.facts)?;
        if let Some(line) = self.torn_at {
            writeln!(f, "the recording is torn at line {line}; it was replayed up to its last whole line")?;
        }
        match &self.difference {
            None => f.write_str("no difference"),
            Some(difference) => {
                let list = |gave: &[Gave]| {
                    let one =
                        |peer: &Gave| format!("{}×{}", peer.peer.get(..8).unwrap_or(&peer.peer), peer.concurrency);
                    gave.iter().map(one).collect::<Vec<_>>().join(" ")
                };
                writeln!(f, "first difference at line {}, {:.6} s:", difference.line, difference.at_us as f64 * 1e-6)?;
                writeln!(f, "  recorded: {}", list(&difference.recorded))?;
                write!(f, "  replayed: {}", list(&difference.replayed))
            }
        }
    }
}

/// Replays a recording up to its first difference.
pub fn replay(recording: &Recording) -> Replay {
    let replayer = Replayer::new(&recording.header);
    let mut found = Replay { decisions: 0, facts: 0, difference: None, torn_at: recording.torn_at };
    for (line, step) in &recording.steps {
        match (step.told.gave(), replayer.tell(step)) {
            (Some(recorded), replayed) => {
                found.decisions += 1;
                let replayed = replayed.unwrap_or_default();
                if recorded != replayed {
                    let recorded = recorded.to_vec();
                    found.difference = Some(Difference { line: *line, at_us: step.at_us, recorded, replayed });
                    break;
                }
            }
            (None, _) => found.facts += 1,
        }
    }
    found
}

/// A selector that lives through a recording.
pub(super) struct Replayer {
    pub(super) selector: PeerSelector,
    pub(super) clock: ClockSource,
}

impl Replayer {
    pub(super) fn new(header: &Header) -> Self {
        let clock = ClockSource::virtual_micros(0);
        let config =
            SelectorConfig { clock: clock.clone(), rng_seed: Some(header.seed), registry_capacity: header.capacity };
        Replayer { selector: PeerSelector::new(config), clock }
    }

    /// Takes one step; the answer if it is a question. A step that names no real peer or content is none for a selector either, and changes nothing.
    pub(super) fn tell(&self, step: &Step) -> Option<Vec<Gave>> {
        self.clock.set_micros(step.at_us);
        let selector = &self.selector;
        match &step.told {
            Told::Select { request, candidates, .. } => {
                let candidates: Vec<_> = candidates.iter().filter_map(super::step::Given::back).collect();
                return Some(gave_of(&selector.select(&request.back()?, &candidates)));
            }
            Told::Rebalance { request, active, need, .. } => {
                let active: Vec<PeerId> = active.iter().filter_map(|peer| PeerId::from_hex(peer)).collect();
                let need = RangePlanDelta { needed_ranges: need.clone() };
                return Some(gave_of(&selector.rebalance(&request.back()?, &active, &need)));
            }
            Told::Outcome { peer, content, index, offset, length, result, bytes, duration_ms, rtt_ms, at } => {
                selector.record_outcome(&TransferOutcome {
                    peer_id: PeerId::from_hex(peer)?,
                    content: content_of(content)?,
                    kind: match index {
                        Some(index) => OutcomeKind::Range { index: *index, offset: *offset, length: *length },
                        None => OutcomeKind::Request { total_length: *length },
                    },
                    result: result.back(),
                    bytes: *bytes,
                    duration_ms: *duration_ms,
                    rtt_ms: *rtt_ms,
                    at: *at,
                });
            }
            Told::Dispatched { peer, count } => selector.on_dispatch(&PeerId::from_hex(peer)?, *count),
            Told::Added { peer, addr } => {
                selector.on_pool_event(&PoolEvent::PeerAdded { peer_id: PeerId::from_hex(peer)?, addr: *addr });
            }
            Told::Lost { peer, reason } => {
                let peer_id = PeerId::from_hex(peer)?;
                selector.on_pool_event(&PoolEvent::PeerRemoved { peer_id, reason: reason.back() });
            }
            Told::Class { peer, class } => selector.on_connection_class(&PeerId::from_hex(peer)?, class.back()),
            Told::Upsert { candidate, provenance } => {
                selector.upsert_candidate_from(&candidate.back()?, provenance.back());
            }
            Told::Removed { peer } => selector.remove_peer(&PeerId::from_hex(peer)?),
        }
        None
    }
}
