//! Whom the client knows: identities, who may be asked, and what the policy was told of them before the run.

use peer_quality::units::Time;

use super::history::Told;
use super::{HISTORY, Identity, Run};
use crate::model::{Kind, PeerResult};
use crate::policy::{Candidate, PeerIndex, Policy};
use crate::sim::draw::PeerDraw;

impl<P: Policy + ?Sized> Run<'_, P> {
    /// The peers get their identities, and the policy is told the history.
    pub(super) fn meet(&mut self, past: &[Told]) {
        for slot in 0..self.draw.peers.len() as u32 {
            self.identify(slot);
        }
        for told in past {
            if !self.identities[told.peer as usize].connected {
                self.connect(told.peer, true, Time::ZERO);
            }
            let (peer, now) = (PeerIndex(told.peer), Time::from_micros(told.at));
            match told.delivery {
                None => self.tell_sent(peer, HISTORY, told.range, now),
                Some(delivery) => self.tell_ended(peer, HISTORY, told.range, &delivery, now),
            }
        }
        self.observer.starts(Time::from_micros(self.origin));
    }

    pub(super) fn identify(&mut self, slot: u32) -> PeerIndex {
        let index = PeerIndex(self.identities.len() as u32);
        let drawn = &self.draw.peers[slot as usize];
        let group = &self.world.peers[drawn.group];
        self.identities.push(Identity {
            slot,
            connected: false,
            result: PeerResult {
                group: group.name.clone(),
                kind: Some(if group.wire.is_some() { Kind::Hostile } else { worst_kind(drawn) }),
                bytes: 0,
                wasted_bytes: 0,
                hostile_bytes: 0,
                requests: 0,
                failures: 0,
                demoted_at_s: None,
                credited_rate: None,
                trust: None,
                true_rate: 0.0,
                credited_over_delivered: None,
            },
        });
        if (slot as usize) < self.current.len() {
            self.current[slot as usize] = index;
        } else {
            self.current.push(index);
        }
        index
    }

    pub(super) fn admit(&mut self, peer: PeerIndex) {
        let drawn = &self.draw.peers[self.identities[peer.0 as usize].slot as usize];
        let candidate = Candidate {
            peer,
            group: drawn.address_group,
            relayed: drawn.relayed,
            handshake_rtt_s: drawn.handshake_rtt_s,
        };
        if let Err(at) = self.candidates.binary_search_by_key(&peer, |candidate| candidate.peer) {
            self.candidates.insert(at, candidate);
        }
        if !self.identities[peer.0 as usize].connected {
            self.connect(peer.0, true, self.time());
        }
        self.offer_waiting(u32::MAX);
    }

    /// Whether a peer is hostile now, and not only before or later.
    pub(super) fn harms(&self, peer: PeerIndex) -> bool {
        let second = self.network.second();
        let drawn = &self.draw.peers[self.identities[peer.0 as usize].slot as usize];
        self.world.peers[drawn.group].wire.is_some() || drawn.at(second).behaviour.harms_at(second)
    }

    /// A peer that has failed may come back as somebody else.
    pub(super) fn sheds(&mut self, slot: u32) {
        if !self.network.sheds_identity(slot) {
            return;
        }
        let old = self.current[slot as usize];
        self.candidates.retain(|candidate| candidate.peer != old);
        self.connect(old.0, false, self.time());
        let fresh = self.identify(slot);
        self.admit(fresh);
    }
}

/// The worst side that a peer is ever on.
fn worst_kind(drawn: &PeerDraw) -> Kind {
    let behaviours = drawn.changes.iter().map(|(_, state)| state.behaviour).chain([drawn.start.behaviour]);
    let rank = |kind: &Kind| match kind {
        Kind::Honest => 0,
        Kind::Broken => 1,
        Kind::Hostile => 2,
    };
    behaviours.map(|behaviour| behaviour.kind()).max_by_key(rank).unwrap_or(Kind::Honest)
}
