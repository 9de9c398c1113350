//! Explains a decision of a recording: who was taken, who was passed over, on which terms (RANK-6).

use std::fmt::Write;

use super::replay::Replayer;
use super::{Recording, Told};

/// A decision and its terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// Its line in the file.
    pub line: usize,
    /// Its moment, microseconds.
    pub at_us: u64,
    /// The terms, ready to print.
    pub text: String,
}

/// Explains the latest `select` at or before a moment; with a peer (or the beginning of its name), that peer's line alone. None if nothing was decided by then.
pub fn explain(recording: &Recording, at_us: u64, peer: Option<&str>) -> Option<Explained> {
    let before = recording
        .steps
        .iter()
        .rposition(|(_, step)| step.at_us <= at_us && matches!(step.told, Told::Select { .. }))?;
    let replayer = Replayer::new(&recording.header);
    for (_, step) in &recording.steps[..before] {
        replayer.tell(step);
    }
    let (line, step) = &recording.steps[before];
    let Told::Select { request, candidates, gave } = &step.told else { return None };
    let candidates: Vec<_> = candidates.iter().filter_map(super::step::Given::back).collect();
    // Peers that this very selection introduces have to be known to be explained.
    candidates.iter().for_each(|candidate| {
        replayer.clock.set_micros(step.at_us);
        replayer.selector.upsert_candidate_from(candidate, dig_peer_selector::Provenance::Dht);
    });
    let terms = replayer.selector.explain(&request.back()?, &candidates);
    let mut text = format!(
        "line {line}, {:.6} s: {} of {} candidates taken\n",
        step.at_us as f64 * 1e-6,
        gave.len(),
        candidates.len()
    );
    let wanted = |name: &str| peer.is_none_or(|peer| name.starts_with(peer));
    let named = terms.candidates.iter().map(|one| (one.peer.to_hex(), one));
    for (name, one) in named.filter(|(name, _)| wanted(name)) {
        let place = one.place.map_or("-".to_owned(), |place| place.to_string());
        let _ = writeln!(
            text,
            "{place:>3} {}  {}\n    cost {:.4} s (p95 {:.4} s) = first byte {:.4} s + body {:.4} s, reliability {:.3}, in flight {} of {}; basis {:?}, standing {:?}",
            name.get(..16).unwrap_or(&name),
            one.reason,
            one.cost_s,
            one.tail_s,
            one.first_byte_s,
            one.body_s,
            one.reliability,
            one.in_flight,
            one.limit,
            one.basis,
            one.standing
        );
        if let Some(wire) = one.wire_terms() {
            let _ = writeln!(text, "    {wire}");
        }
    }
    Some(Explained { line: *line, at_us: step.at_us, text })
}
