//! What an engine shows of itself: views of peers, forecasts, and the terms of a decision (RANK-6). Reading changes no decision.

use alloc::vec::Vec;
use core::hash::Hash;

use crate::audit::Standing;
use crate::engine::Engine;
use crate::estimate::{Forecast, Rating};
use crate::peer::card::Kind;
use crate::rank::plan::{Advice, Pick, Work};
use crate::rank::quote::Quote;
use crate::rank::{Explained, Explanation, Reason};
use crate::table::Slot;
use crate::units::{Slowness, Time};

/// What is known of a peer, for observers. Reading it changes no decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Mean time to first byte, seconds.
    pub first_byte_s: Option<f64>,
    /// Mean slowness of its bodies.
    pub slowness: Option<Slowness>,
    /// Relative spread of its rate: 0 without samples.
    pub volatility: f64,
    /// Share of requests that ended well, 0..=1; none before the first.
    pub reliability: Option<f64>,
    /// Ends that were learned from.
    pub samples: u64,
    /// Failed verifications.
    pub offences: u64,
    /// Requests that were sent and have not ended.
    pub pending: u32,
    /// Requests in flight, reservations included.
    pub in_flight: u32,
    /// Recommended most in flight.
    pub limit: u32,
    /// Standing by proof.
    pub standing: Standing,
    /// Whether it is left alone after failures in a row.
    pub cooling: bool,
    /// Whether there is a live link.
    pub connected: bool,
}

impl<K: Copy + Eq + Hash + Ord> Engine<K> {
    /// Explains what [`decide`](Self::decide) would answer, without deciding: no state changes.
    pub fn explain(&self, work: &Work, candidates: &[Slot], now: Time) -> Explanation<K> {
        // Terms cache and expire lazily, so they are computed on a copy.
        let mut copy = self.clone();
        copy.decisions += 1;
        let mut quotes = Vec::new();
        copy.quote_all(work, candidates, now, &mut quotes);
        let mut advice = Advice::new();
        let mut turns = self.turns;
        copy.advise(&quotes, work, &mut turns, &mut advice);
        let mut explained: Vec<_> =
            candidates.iter().map(|&slot| copy.explain_one(slot, work, &quotes, &advice, now)).collect();
        let place = |one: &Explained<K>| one.place.unwrap_or(usize::MAX);
        explained.sort_by(|a, b| {
            place(a).cmp(&place(b)).then(a.cost_s.total_cmp(&b.cost_s)).then_with(|| a.peer.cmp(&b.peer))
        });
        Explanation { candidates: explained }
    }

    fn explain_one(&mut self, slot: Slot, work: &Work, quotes: &[Quote], advice: &[Pick], now: Time) -> Explained<K> {
        let key = self.peers.key(slot);
        let card = *self.peers.fresh_card(slot);
        let peer = self.peers.unquoted_mut(slot);
        let prior = self.population.prior(peer.path);
        let mut terms = peer.terms(&card, &Kind::new(prior), work.scope, now, self.decisions);
        // Cards leave the error bars out.
        terms.forecast = peer.forecast(&prior, now);
        let rating = peer.rating(&prior, now);
        let rate = |slowness: Slowness| slowness.bytes_per_sec() as f32;
        let ramp_s = terms.forecast.ramp_s(work.range);
        let record = peer.delivered.slowness().map(|_| peer.delivered.forecast(&prior));
        let quote = quotes.iter().find(|quote| quote.slot == slot);
        let place = advice.iter().position(|pick| pick.slot == slot);
        let reason = match (place, quote) {
            (Some(at), _) if advice[at].exploratory => Reason::Tried { requests: advice[at].requests },
            (Some(at), _) => Reason::Chosen { requests: advice[at].requests },
            (None, None) => Reason::Banned,
            (None, Some(_)) if terms.standing == Standing::Condemned => Reason::Condemned,
            (None, Some(_)) if terms.cooling => Reason::CoolingOff { left: peer.cooling.left(now) },
            (None, Some(quote)) if quote.room == 0 => Reason::Saturated,
            (None, Some(quote)) if quote.is_suspect => Reason::Suspect,
            (None, Some(quote)) if quote.is_proven() => Reason::NotNeeded,
            (None, Some(_)) => Reason::NotTried,
        };
        Explained {
            peer: key,
            place,
            reason,
            basis: terms.forecast.basis,
            first_byte_s: terms.forecast.first_byte_s,
            body_s: terms.forecast.mean_s(work.range) - terms.forecast.first_byte_s - ramp_s,
            error_s: terms.forecast.error_s(work.range),
            ramp_s: rating.map(|_| ramp_s),
            rate: rating.and_then(|rating| rating.raw).map(rate),
            prior_rate: Some(rate(rating.map_or(prior.slowness, |rating| rating.prior))),
            weight: rating.map(|rating| rating.weight as f32),
            sanity: rating.map(|rating| rating.sanity),
            t_wait_s: record.map(|record| record.mean_s(work.range)),
            reliability: terms.reliability,
            cost_s: quote.map_or(f32::INFINITY, |quote| quote.cost_s),
            tail_s: quote.map_or(f32::INFINITY, |quote| quote.tail_s),
            in_flight: terms.in_flight,
            limit: terms.limit,
            standing: terms.standing,
        }
    }

    /// What is known of a peer.
    pub fn view(&self, slot: Slot, now: Time) -> View {
        let peer = self.peers.value(slot);
        let pending = peer.pending_at(now);
        View {
            first_byte_s: peer.delivered.first_byte_s(),
            slowness: peer.delivered.slowness(),
            volatility: peer.delivered.volatility(),
            reliability: peer.reliability.share(),
            samples: u64::from(peer.samples),
            offences: peer.proof.offences(),
            pending,
            in_flight: pending.saturating_add(self.peers.card(slot).reserved),
            limit: peer.limit(self.population.concurrency(peer.path), now),
            standing: peer.proof.standing(),
            cooling: peer.cooling.is_on(now, self.decisions),
            connected: peer.connected,
        }
    }

    /// What a fetch sent to a peer now would take, beside nothing else: what [`decide`](Self::decide) quotes from. Reading it changes no decision; the answer
    /// changes with every fact and, where the wire is seen, by itself.
    pub fn forecast(&self, slot: Slot, now: Time) -> Forecast {
        let peer = self.peers.value(slot);
        peer.forecast(&self.population.prior(peer.path), now)
    }

    /// What the wire says of a peer's rate, and how far that is trusted; none where the wire is not seen. Changes like [`forecast`](Self::forecast).
    pub fn rating(&self, slot: Slot, now: Time) -> Option<Rating> {
        let peer = self.peers.value(slot);
        peer.rating(&self.population.prior(peer.path), now)
    }
}
