//! Whether a running request is still worth waiting for: the patience rule applied to what the ledger sees (HOST-D2,
//! AUD-7 in simple form).

use std::time::Duration;

use dig_peer_selector::{ContentRequest, RangeProgress, RangeUnderWay, Recourse, UnderWay};
use tokio::time::Instant;

use super::state::State;
use super::{Attempt, Ledger};
use crate::fetch::patience::{Lateness, Sight};

/// A peer that sent something within this time delivers, if slowly; otherwise the rules of silence apply.
const DELIVERING: Duration = Duration::from_millis(250);

/// How often a running range is looked at, at least: the end of a download may come before its limits do.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// What to do about a running request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::fetch) enum Verdict {
    /// Look again after this long.
    Wait(Duration),
    /// Let another peer try: this one is late.
    GiveUp(String),
    /// Let another peer try: this one is as slow as ever, but the download waits for nothing else.
    Move,
}

impl Ledger {
    /// Whether to keep waiting for a running request. `timeout` is the bound that holds even if nobody else could be
    /// asked; it doubles, like patience, with each abandonment of the range.
    pub(in crate::fetch) fn judge(&self, attempt: &Attempt, timeout: Duration, patient: bool) -> Verdict {
        let mut state = self.lock();
        let now = Instant::now();
        let Some(running) = state.running.get(&attempt.id) else {
            return Verdict::GiveUp("the request is no longer known".into());
        };
        let (limits, sent) = (running.limits, running.stamps.sent());
        let elapsed = now.duration_since(sent);
        let timeout = if patient { timeout.saturating_mul(1 << attempt.doublings.min(4)) } else { timeout };
        if elapsed >= timeout {
            return Verdict::GiveUp(format!("not done within {timeout:?}"));
        }
        let left = timeout - elapsed;
        if !patient {
            return Verdict::Wait(left);
        }
        let sight = Sight {
            elapsed,
            started: running.stamps.first_byte().is_some(),
            silent: state.silence(&attempt.peer, now).min(elapsed),
        };
        let lateness = match limits.judge(&sight) {
            Err(wait) => match (sight.silent < DELIVERING).then(|| self.is_better_elsewhere(&state, attempt)).flatten()
            {
                Some(true) => Lateness::Total,
                Some(false) => return Verdict::Move,
                None => return Verdict::Wait(wait.min(left).min(LOOK_AGAIN).max(Duration::from_millis(1))),
            },
            Ok(lateness) => lateness,
        };
        let alternative = state.candidates.iter().any(|c| *c != attempt.peer);
        if !alternative || state.late_together(&attempt.peer, lateness, elapsed, now) {
            // Nobody better, or it is our own link: wait on, twice as long, and charge nobody.
            let doubled = limits.doubled();
            if let Some(r) = state.running.get_mut(&attempt.id) {
                r.limits = doubled;
            }
            return Verdict::Wait(Duration::from_millis(1));
        }
        Verdict::GiveUp(match lateness {
            Lateness::FirstByte => format!("no first byte within {elapsed:?}"),
            Lateness::Stall => format!("no byte for {:?}", sight.silent),
            Lateness::Total => format!("far slower than usual, not done after {elapsed:?}"),
        })
    }

    /// Whether another holder would bring this range sooner, now that the download waits for nothing else: the selector knows. Some if so, true if the range is late by its
    /// own peer's record.
    fn is_better_elsewhere(&self, state: &State, attempt: &Attempt) -> Option<bool> {
        let (selector, running) = (self.book.selector()?, state.running.get(&attempt.id)?);
        if state.pending > 0 {
            return None;
        }
        let range = RangeUnderWay {
            peer_id: attempt.peer,
            length: attempt.chunk.length,
            age: running.stamps.sent().elapsed(),
            progress: Some(RangeProgress {
                bytes: running.stamps.payload_bytes(),
                first_byte: running.stamps.first_byte(),
            }),
            holders: 1,
            given_up: attempt.doublings,
        };
        let nothing_else = ContentRequest {
            total_length: Some(0),
            range_count: Some(0),
            ..ContentRequest::new(self.content, state.candidates.len().max(1))
        };
        let under_way = UnderWay { ranges: &[range], recourse: Recourse::GiveUp, free_slots: None };
        let review = selector.review(&nothing_else, &under_way);
        review.moves.first().map(|moved| moved.is_late)
    }
}
