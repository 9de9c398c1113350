//! Keeps what happens in a run.

use peer_quality::measure::End;
use peer_quality::units::Time;

use crate::policy::{Opinion, PeerIndex, Signal};
use crate::report::{Ended, How, Predicted, RunLog, Sent, Viewed};
use crate::sim::{Fact, HISTORY, Observer};

/// Writes facts of the run, not of the history before it, to a log.
pub(super) struct Watcher<'a> {
    origin_s: f64,
    log: &'a mut RunLog,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(log: &'a mut RunLog) -> Self {
        Watcher { origin_s: 0.0, log }
    }

    fn second(&self, at: Time) -> f64 {
        at.as_micros() as f64 * 1e-6 - self.origin_s
    }
}

impl Observer for Watcher<'_> {
    fn starts(&mut self, at: Time) {
        self.origin_s = self.second(at);
        // Opinions of the history: what was thought of each peer when the run began.
        self.log.viewed.iter_mut().for_each(|view| view.at_s = 0.0);
    }

    fn fact(&mut self, now: Time, fact: &Fact) {
        let at_s = self.second(now);
        match *fact {
            Fact::Sent { peer, content, .. } if content != HISTORY => self.log.sent.push(Sent { at_s, peer: peer.0 }),
            Fact::Ended { peer, content, delivery, .. } if content != HISTORY => self.log.ended.push(Ended {
                at_s,
                peer: peer.0,
                held_s: delivery.elapsed.as_secs_f64(),
                bytes: delivery.bytes.get(),
                how: match delivery.end {
                    End::Completed => How::Useful,
                    End::Cancelled => How::Dropped,
                    End::Interrupted | End::Failed(_) => How::Failed,
                },
            }),
            _ => {}
        }
    }

    fn wants_opinions(&self) -> bool {
        self.log.views
    }

    fn wants_predictions(&self) -> bool {
        self.log.predictions
    }

    fn prediction(&mut self, now: Time, peer: PeerIndex, predicted_s: f64, took_s: f64) {
        let at_s = self.second(now);
        self.log.predicted.push(Predicted { at_s, peer: peer.0, expected_s: predicted_s, took_s });
    }

    fn signal(&mut self, _now: Time, signal: &Signal) {
        let signals = self.log.signals.get_or_insert_default();
        signals.push((signal.name.to_owned(), signal.peer.map(|peer| peer.0)));
    }

    fn opinion(&mut self, now: Time, peer: PeerIndex, opinion: &Opinion) {
        if self.log.views {
            let Opinion { demoted, credited_rate } = *opinion;
            self.log.viewed.push(Viewed { at_s: self.second(now), peer: peer.0, demoted, credited_rate });
        }
    }
}
