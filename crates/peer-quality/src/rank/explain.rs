//! Explanations (RANK-6): for one decision, each candidate's terms with their units, and why it was taken or passed over.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::audit::Standing;
use crate::estimate::{Basis, Sanity};
use crate::units::Span;

/// Why a candidate was taken or passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Taken for what it delivers, with this many requests.
    Chosen {
        /// Requests in flight that it may have besides those it has.
        requests: u32,
    },
    /// Taken to be measured, with this many requests.
    Tried {
        /// Requests in flight that it may have besides those it has.
        requests: u32,
    },
    /// The host banned it.
    Banned,
    /// It has as many requests in flight as it can use.
    Saturated,
    /// It is left alone after failures in a row.
    CoolingOff {
        /// What is left of the pause.
        left: Span,
    },
    /// It failed since anybody delivered, as most did: whoever did not is asked first.
    Suspect,
    /// Proven offences put it below everyone else.
    Condemned,
    /// Cheaper peers do the work.
    NotNeeded,
    /// It is unmeasured, and this decision tries nobody more.
    NotTried,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Chosen { requests } => write!(f, "chosen, {requests} more in flight"),
            Reason::Tried { requests } => write!(f, "tried, {requests} more in flight"),
            Reason::Banned => f.write_str("banned by the host"),
            Reason::Saturated => f.write_str("saturated"),
            Reason::CoolingOff { left } => write!(f, "cooling off for {left} after failures"),
            Reason::Suspect => f.write_str("failed with most others: those that did not are asked first"),
            Reason::Condemned => f.write_str("condemned by failed verifications"),
            Reason::NotNeeded => f.write_str("not needed: cheaper peers do the work"),
            Reason::NotTried => f.write_str("unmeasured: this decision tries nobody more"),
        }
    }
}

/// One candidate of a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explained<K> {
    /// Who.
    pub peer: K,
    /// Place in the advice, 0 is best; none if passed over.
    pub place: Option<usize>,
    /// Why.
    pub reason: Reason,
    /// What the times rest on.
    pub basis: Basis,
    /// Expected time to first byte, seconds.
    pub first_byte_s: f32,
    /// Expected time of the body, seconds, without the ramp.
    pub body_s: f32,
    /// One standard error of the whole expectation, seconds.
    pub error_s: f32,
    /// Expected round trips of slow start beyond the first byte, seconds; none where the wire is not seen.
    pub ramp_s: Option<f32>,
    /// Rate as read from the wire, bytes per second; none before a burst.
    pub rate: Option<f32>,
    /// Rate that stands in for it as far as it is not trusted, bytes per second: the peer's own prior, or the population's rate.
    pub prior_rate: Option<f32>,
    /// Weight of the rate against that prior, 0..=1; none where the wire is not seen.
    pub weight: Option<f32>,
    /// Whether the rate fits the round trip; none where the wire is not seen.
    pub sanity: Option<Sanity>,
    /// Expected wait by the record of completed fetches alone, seconds, whatever its age; none without a record.
    pub t_wait_s: Option<f32>,
    /// Share of requests that end well, 0..=1, cautious.
    pub reliability: f32,
    /// Seconds until one more request is delivered: the ordering quantity. Infinite for the banned.
    pub cost_s: f32,
    /// The same at p95.
    pub tail_s: f32,
    /// Requests in flight.
    pub in_flight: u32,
    /// Recommended most in flight.
    pub limit: u32,
    /// Standing by proof.
    pub standing: Standing,
}

/// A decision with its terms: the taken in their order, then the passed over by ascending cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation<K> {
    /// Every candidate, once.
    pub candidates: Vec<Explained<K>>,
}

impl<K> Explanation<K> {
    /// The same with other names for the peers.
    pub fn map<L>(self, name: impl Fn(K) -> L) -> Explanation<L> {
        let rename = |one: Explained<K>| Explained {
            peer: name(one.peer),
            place: one.place,
            reason: one.reason,
            basis: one.basis,
            first_byte_s: one.first_byte_s,
            body_s: one.body_s,
            error_s: one.error_s,
            ramp_s: one.ramp_s,
            rate: one.rate,
            prior_rate: one.prior_rate,
            weight: one.weight,
            sanity: one.sanity,
            t_wait_s: one.t_wait_s,
            reliability: one.reliability,
            cost_s: one.cost_s,
            tail_s: one.tail_s,
            in_flight: one.in_flight,
            limit: one.limit,
            standing: one.standing,
        };
        Explanation { candidates: self.candidates.into_iter().map(rename).collect() }
    }

    /// The best.
    pub fn winner(&self) -> Option<&Explained<K>> {
        self.candidates.first().filter(|candidate| candidate.place.is_some())
    }

    /// The second best.
    pub fn runner_up(&self) -> Option<&Explained<K>> {
        self.candidates.get(1)
    }
}

impl<K: fmt::Display> fmt::Display for Explanation<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for one in &self.candidates {
            match one.place {
                Some(place) => write!(f, "#{place} ")?,
                None => f.write_str(" - ")?,
            }
            writeln!(
                f,
                "{}: {} | {:.4} s = ({:.4} s first byte + {:.4} s body) / {:.2} reliable, p95 {:.4} s, {}/{} in flight, {:?}",
                one.peer,
                one.reason,
                one.cost_s,
                one.first_byte_s,
                one.body_s,
                one.reliability,
                one.tail_s,
                one.in_flight,
                one.limit,
                one.basis
            )?;
            if let Some(wire) = one.wire_terms() {
                writeln!(f, "    {wire}")?;
            }
        }
        Ok(())
    }
}

impl<K> Explained<K> {
    /// The terms from the wire in one line, with their units; none where the wire is not seen.
    pub fn wire_terms(&self) -> Option<String> {
        let weight = self.weight?;
        let rate = |rate: Option<f32>| rate.map_or("unknown".into(), |rate| format!("{:.3} MB/s", rate * 1e-6));
        let doubt = match self.sanity {
            Some(Sanity::TooFast) => ", too fast for its round trip",
            Some(Sanity::TooSlow) => ", too slow for its round trip",
            _ => "",
        };
        let wait = self.t_wait_s.map_or("none".into(), |secs| format!("{secs:.4} s"));
        Some(format!(
            "ramp {:.4} s, rate {} at weight {weight:.2}, prior {}{doubt}; record T_wait {wait}, error ±{:.4} s",
            self.ramp_s.unwrap_or(0.0),
            rate(self.rate),
            rate(self.prior_rate),
            self.error_s
        ))
    }
}
