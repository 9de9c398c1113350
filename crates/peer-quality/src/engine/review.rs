//! Looks at what is under way (HEDGE): see [`hedge`](crate::hedge).

use alloc::vec::Vec;
use core::hash::Hash;

use crate::engine::Engine;
use crate::estimate::Basis;
use crate::hedge::{self, Expected, Move, Piece, Recourse, Slow};
use crate::peer::card::Kind;
use crate::rank::plan::Work;
use crate::rank::quote::Terms;
use crate::table::Slot;
use crate::units::{Bytes, Span, Time};

impl<K: Copy + Eq + Hash + Ord> Engine<K> {
    /// Which of the `pieces` under way for `work` another of the `candidates` would bring sooner, the one that needs longest first, and when to look again; never, where
    /// nothing is under way. [`Work::ranges`] are those that nobody was asked for yet.
    ///
    /// Changes with time and with every fact, so it is worth asking whenever a request ends as well. A host that gives a piece up tells so by its end, as of one that ran out of
    /// time, or as a cancel where it was on time; one that asks a second peer tells of both ends. What a move wastes is paid for when it is named, so name no pieces that
    /// could not be moved; a late piece to be given up costs nothing, and is named again.
    pub fn review(
        &mut self,
        work: &Work,
        recourse: Recourse,
        pieces: &[Piece],
        candidates: &[Slot],
        now: Time,
        into: &mut Vec<Move>,
    ) -> Option<Span> {
        into.clear();
        let expected: Vec<Expected> = pieces.iter().map(|piece| self.expected(piece, work.scope, now)).collect();
        let (slow, mut next_s) = hedge::slow(pieces, &expected, work, recourse, now);
        let is_full = self.downlink.limit().is_some_and(|limit| self.in_flight.requests >= limit);
        // It may be our own link. Where nothing is given up for it, one piece finds out: if it comes, the others follow.
        let is_ours = self.common.is_ours() || self.is_common(pieces, &expected, &slow, now);
        let finds_out = recourse == Recourse::Duplicate && pieces.iter().all(|piece| piece.holders < 2);
        if !slow.is_empty() && !is_full && (!is_ours || finds_out) {
            let mut quotes = core::mem::take(&mut self.quotes);
            self.quote_all(work, candidates, now, &mut quotes);
            let rest_s = hedge::rest_s(pieces, &expected, &slow, work);
            let wait_s = hedge::moves(pieces, &slow, &quotes, rest_s, now, into);
            next_s = next_s.into_iter().chain(wait_s).reduce(f32::min);
            self.quotes = quotes;
            if is_ours {
                into.truncate(1);
            }
            into.retain(|one| {
                self.duplicates.spend(one.cost(&pieces[one.piece], recourse), pieces[one.piece].size, one.is_late)
            });
        }
        hedge::look_again(pieces, &slow, into, next_s, now)
    }

    /// Whether those that are late are so together, and nobody else delivered as ever meanwhile.
    fn is_common(&self, pieces: &[Piece], expected: &[Expected], slow: &[Slow], now: Time) -> bool {
        let since = hedge::late_since(pieces, expected, slow, now);
        let delivered = || self.common.completed_since(since, |slot| hedge::is_late(pieces, slow, slot));
        hedge::is_common(pieces, expected, slow) && !delivered()
    }

    fn expected(&mut self, piece: &Piece, scope: u64, now: Time) -> Expected {
        let terms = self.terms(piece.slot, scope, now);
        let usual_s = terms.forecast.mean_s(piece.size);
        let alone = piece.size.max(Bytes::new(1)).get() as f32 / usual_s.max(1e-6);
        let pace = terms.capacity.map_or(alone * terms.in_flight.max(1) as f32, |capacity| capacity.total.max(alone));
        let is_measured = terms.forecast.basis == Basis::Measured;
        Expected { due_s: terms.due_s(piece.size), usual_s, is_measured, pace }
    }

    /// The terms of one peer.
    pub(super) fn terms(&mut self, slot: Slot, scope: u64, now: Time) -> Terms {
        let card = *self.peers.fresh_card(slot);
        let peer = self.peers.unquoted_mut(slot);
        let kind = Kind::new(self.population.prior(card.path));
        let in_flight = peer.pending();
        let terms = peer.terms(&card, &kind, scope, now, self.decisions);
        self.in_flight.moved(in_flight, peer.pending());
        terms
    }
}
