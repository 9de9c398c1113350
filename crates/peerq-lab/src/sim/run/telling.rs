//! What passes between client and policy besides questions: facts, and opinions. Every fact is shown to the observer first.

use peer_quality::measure::Delivery;
use peer_quality::units::{Bytes, Time};

use super::Run;
use super::guard::caught;
use crate::measure::credit;
use crate::model::Kind;
use crate::policy::{Opinion, PeerIndex, Policy};
use crate::sim::observe::Fact;

impl<P: Policy + ?Sized> Run<'_, P> {
    /// A link to a peer came up or went down.
    pub(super) fn connect(&mut self, peer: u32, up: bool, now: Time) {
        let identity = &mut self.identities[peer as usize];
        identity.connected = up;
        let group = self.draw.peers[identity.slot as usize].group;
        let peer = PeerIndex(peer);
        self.observer.fact(now, &Fact::Connected { peer, group, up });
        let policy = &mut *self.policy;
        self.panics += u32::from(caught(|| policy.connected(peer, up, now)).is_none());
    }

    pub(super) fn tell_sent(&mut self, peer: PeerIndex, content: u64, range: Bytes, now: Time) {
        self.observer.fact(now, &Fact::Sent { peer, content, range });
        let policy = &mut *self.policy;
        self.panics += u32::from(caught(|| policy.sent(peer, range, now)).is_none());
    }

    pub(super) fn tell_ended(&mut self, peer: PeerIndex, content: u64, range: Bytes, delivery: &Delivery, now: Time) {
        self.observer.fact(now, &Fact::Ended { peer, content, range, delivery: *delivery });
        let policy = &mut *self.policy;
        self.panics += u32::from(caught(|| policy.ended(peer, content, range, delivery, now)).is_none());
    }

    /// Notes when the policy stops trusting a peer, and what it credits a hostile one with that `delivered` something just now.
    pub(super) fn judge(&mut self, peer: PeerIndex, delivered: bool) {
        let result = &self.identities[peer.0 as usize].result;
        let (trusted, credits) = (result.demoted_at_s.is_none(), delivered && result.kind == Some(Kind::Hostile));
        let watched = self.observer.wants_opinions();
        if !trusted && !watched && !credits {
            return;
        }
        let opinion = self.opinion(peer);
        if credits {
            let identity = &mut self.identities[peer.0 as usize];
            let delivers = self.network.true_rate(identity.slot);
            identity.result.credited_over_delivered = credit::over(opinion.credited_rate, delivers);
        }
        if watched {
            let now = self.time();
            self.observer.opinion(now, peer, &opinion);
        }
        if trusted && opinion.demoted {
            self.identities[peer.0 as usize].result.demoted_at_s = Some(self.network.second());
        }
    }

    /// What the policy expects of a fetch of its own that is sent now, seconds.
    pub(super) fn predicted_s(&mut self, peer: PeerIndex, range: Bytes) -> Option<f64> {
        let (policy, now) = (&*self.policy, self.time());
        let predicted = caught(|| policy.predicted_s(peer, range, now));
        self.panics += u32::from(predicted.is_none());
        predicted.flatten()
    }

    /// How far the policy trusts what it measured of a peer itself.
    pub(super) fn trust(&mut self, peer: PeerIndex) -> Option<f64> {
        let (policy, now) = (&*self.policy, self.time());
        let trust = caught(|| policy.trust(peer, now));
        self.panics += u32::from(trust.is_none());
        trust.flatten()
    }

    pub(super) fn opinion(&mut self, peer: PeerIndex) -> Opinion {
        let (policy, now) = (&*self.policy, self.time());
        let opinion = caught(|| policy.opinion(peer, now));
        self.panics += u32::from(opinion.is_none());
        opinion.unwrap_or_default()
    }
}
